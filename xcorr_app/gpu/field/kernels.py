"""The family's kernels: what each takes and how it is launched."""

from __future__ import annotations

from collections.abc import Mapping

from xcorr_app.gpu.field import launches
from xcorr_app.gpu.field.problem import FieldProblem
from xcorr_app.gpu.runtime.kernel_table import KernelEntry

__all__ = ["KERNELS"]

_GAUSS_NEWTON = "Baker and Matthews (2004), doi:10.1023/B:VISI.0000011205.11775.fd: Gauss-Newton, "

KERNELS: Mapping[str, KernelEntry[FieldProblem]] = {
    name: KernelEntry(name, (source,), lambda _problem, _limits: None, launch, document=document)
    for name, source, launch, document in (
        (
            "compare-frames",
            "field/compare_frames",
            launches.compare_launch,
            _GAUSS_NEWTON + "frames seen through fields",
        ),
        ("field-levels", "field/field_levels", launches.levels_launch, _GAUSS_NEWTON + "gains and offsets"),
        ("slope-sums", "field/slope_sums", launches.slope_launch, _GAUSS_NEWTON + "the right-hand side"),
        (
            "alike-sums",
            "field/alike_sums",
            launches.alike_launch,
            "Not in a document: products of neighbouring residuals",
        ),
        ("field-step", "field/field_step", launches.step_launch, _GAUSS_NEWTON + "a step, its bend by MacKay (1992)"),
        (
            "patch-match",
            "field/patch_match",
            launches.patch_match_launch,
            "Padfield (2012), doi:10.1109/TIP.2011.2181402",
        ),
        (
            "patch-trust",
            "field/patch_trust",
            launches.patch_trust_launch,
            "Westerweel and Scarano (2005), doi:10.1007/s00348-005-0016-6: the normalised median test",
        ),
        ("field-summary", "field/field_summary", launches.summary_launch, "Not in a document: medians and means"),
        (
            "linear-sums",
            "field/linear_sums",
            launches.linear_sums_launch,
            _GAUSS_NEWTON + "frames seen through linear motions",
        ),
        (
            "linear-scatter",
            "field/linear_scatter",
            launches.linear_scatter_launch,
            "White (1980), doi:10.2307/1912934: standard errors of sums by squares",
        ),
        (
            "filter-frames",
            "field/filter_frames",
            launches.filter_launch,
            "Unser (1999), doi:10.1109/79.799930: splines",
        ),
    )
}
"""Kernels that fit fields of displacements, by their names."""
