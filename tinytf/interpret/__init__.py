"""Looking inside: what heads, units and the residual stream hold, and what the model needs."""
