# The HTTP service on the base install: docker build -t spanshot .
FROM python:3.12-slim AS build
WORKDIR /src
COPY . .
RUN pip install --no-cache-dir hatchling && python -m hatchling build --target wheel --clean \
 && python -m venv /venv \
 && /venv/bin/pip install --no-cache-dir --constraint constraints.txt "$(ls dist/*.whl)[serve]"

FROM python:3.12-slim
COPY --from=build /venv /venv
RUN useradd --system --uid 10001 --no-create-home spanshot && install --directory --owner spanshot /data
USER 10001
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 8000
HEALTHCHECK CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/ready', timeout=5)"]
# It refuses to start without API keys in SPANSHOT_API_KEYS.
ENTRYPOINT ["spanshot", "serve", "--folder", "/data", "--host", "0.0.0.0", "--port", "8000"]
