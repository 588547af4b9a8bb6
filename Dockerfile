# On a CPU:        docker build -t xcorr .
# On NVIDIA GPUs:  docker build -t xcorr:cuda --build-arg EXTRA=gpu .        (gpu-cuda12 for CUDA 12)
# Every format and cluster is in both.
# Run:             docker run --rm -u $(id -u) -v "$PWD:/data" [--gpus all] xcorr align MOVIES -o OUT
FROM python:3.13-slim AS build
ARG EXTRA=
COPY . /source
RUN python -m venv /opt/xcorr \
    && /opt/xcorr/bin/pip install --no-cache-dir "/source[cluster,formats,zarr${EXTRA:+,$EXTRA}]"

# CuPy brings the libraries of CUDA; the driver comes from the host. Caches go to a place where any user may write.
FROM python:3.13-slim
LABEL org.opencontainers.image.title=xcorr org.opencontainers.image.licenses=BSD-3-Clause
COPY --from=build /opt/xcorr /opt/xcorr
ENV PATH=/opt/xcorr/bin:$PATH \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    HOME=/tmp
WORKDIR /data
ENTRYPOINT ["xcorr"]
CMD ["--help"]
