"""Speed and memory, measured side by side with ONNX Runtime."""
