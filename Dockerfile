# The container image: one static binary and nothing else to run, no shell and no
# package manager. internal/test/e2e assembles the last stage without Docker and runs it.
#
#   docker build --build-arg VERSION=v1.2.3 --build-arg COMMIT=$(git rev-parse HEAD) -t quittance .

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=""
ARG COMMIT=""
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X main.version=${VERSION} -X main.commit=${COMMIT}" -o /out/quittance ./cmd/quittance
RUN mkdir /out/data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /usr/local/go/lib/time/zoneinfo.zip /usr/share/zoneinfo.zip
COPY --from=build /out/quittance /usr/bin/quittance
# The database of SQLite. It is the only folder that is written.
COPY --from=build --chown=65532:65532 /out/data /var/lib/quittance
ENV ZONEINFO=/usr/share/zoneinfo.zip
USER 65532:65532
WORKDIR /var/lib/quittance
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s --retries=3 CMD ["/usr/bin/quittance", "ready", "--exclude", "chains", "--config", "/etc/quittance/quittance.yaml"]
ENTRYPOINT ["/usr/bin/quittance"]
CMD ["serve", "--config", "/etc/quittance/quittance.yaml"]
