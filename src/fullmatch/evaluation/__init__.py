"""How good a model is: scores, intervals, paired tests, calibration."""
