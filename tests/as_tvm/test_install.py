"""``import tvm`` answered by this package."""
from __future__ import annotations

import subprocess
import sys
import textwrap


def run(code, *args):
    return subprocess.run([sys.executable, *args, "-c", textwrap.dedent(code)], capture_output=True, text=True)


def test_rooms_are_the_same_modules():
    done = run("""
        import anchorleg.as_tvm as shim
        shim.install()
        import tvm, tvm.relay.backend.te_compiler, anchorleg
        from tvm import relay, parser
        from tvm.ir.base import save_json
        assert tvm is anchorleg and relay is anchorleg.relay
        assert tvm.relay.backend.te_compiler is anchorleg.relay.backend.te_compiler
        assert tvm._ffi.base.TVMError is tvm.TVMError
        assert relay.analysis._ffi_api._test_type_solver()
        assert tvm.topi.x86.schedule_injective
        assert relay.op._make.concatenate is relay.concatenate and not hasattr(relay.op._make, "no_such_operator")
        shim.uninstall()
        import sys
        assert not any(n == "tvm" or n.startswith("tvm.") for n in sys.modules)
        try:
            anchorleg._ffi
        except AttributeError:
            print("gone")
    """)
    assert done.stdout.strip() == "gone", done.stderr


def test_upstreams_addresses_are_found_by_attribute():
    done = run("""
        import anchorleg.relay
        import anchorleg.as_tvm as shim
        shim.install()
        import tvm
        func = tvm._ffi.get_global_func("relay.tec.LowerTE")
        assert func is not None
        assert tvm.parser.parse is tvm.relay.parse
        try:
            tvm.nonsense
        except AttributeError:
            print("fine")
    """)
    assert done.stdout.strip() == "fine", done.stderr


def test_tuners_that_are_not_here_can_be_imported_and_say_so_when_used():
    done = run("""
        import anchorleg.as_tvm as shim
        shim.install()
        from tvm import auto_scheduler, meta_schedule as ms
        import tvm
        assert tvm.relay.transform._ffi_api.AnnotateUsedMemory() is not None
        for use in (lambda: ms.database, lambda: auto_scheduler.TuningOptions):
            try:
                use()
            except NotImplementedError as exc:
                print(exc)
    """)
    assert "'database' belongs to a tuner" in done.stdout and "'TuningOptions'" in done.stdout, done.stderr


def test_refuses_beside_another_tvm():
    done = run("""
        import sys, types
        sys.modules["tvm"] = types.ModuleType("tvm")
        import anchorleg.as_tvm as shim
        try:
            shim.install()
        except ValueError as exc:
            print(exc)
    """)
    assert "another tvm is already imported" in done.stdout, done.stderr


def test_scripts(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys, tvm\nprint(tvm.__name__, sys.argv[1:])\n")
    done = subprocess.run([sys.executable, "-m", "anchorleg.as_tvm", str(script), "a", "b"], capture_output=True, text=True)
    assert done.stdout.strip() == "anchorleg ['a', 'b']", done.stderr
