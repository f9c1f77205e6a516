"""The learners: one method, one file, one estimator."""
