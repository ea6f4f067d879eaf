"""Rules outside NumPy: added to tables of any engine, or written as SQL, ONNX and torch.

`plan` has the numbers of a rule, `formula` its arithmetic as SQL; `engines` has one module for each engine.
Nothing here fits or measures, and nothing here knows charts, estimators or the command line.
"""
