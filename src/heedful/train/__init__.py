"""Training: the loop, and what stands around it. It knows neither the task nor the family of the model."""
