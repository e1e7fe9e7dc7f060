"""One session: decide, call the model, run tools, judge the result."""
