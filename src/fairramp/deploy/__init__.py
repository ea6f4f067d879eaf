"""A rule where decisions are made: tables of every engine, SQL, ONNX, torch.

Each gives the probabilities of the rule itself. May not know audits, certificates, charts or pages.
"""
