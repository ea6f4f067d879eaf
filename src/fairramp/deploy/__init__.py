"""Rules in production: dataframes of every engine, SQL, ONNX and torch.

Each gives the same probabilities as the rule itself. Must not import audits, certificates, charts or pages.
"""
