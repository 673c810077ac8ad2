# hikidashi in a container: `docker build -t hikidashi .`; see docs/container.md.
FROM node:24-alpine AS build
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY . .
RUN npm run build

# The build is a bundle without dependencies. The provider for git repositories needs git.
FROM node:24-alpine
RUN apk add --no-cache git \
 && install -d -o node -g node /state
WORKDIR /app
COPY --from=build /src/package.json /src/config.schema.json ./
COPY --from=build /src/dist ./dist
COPY deploy/docker/healthcheck.mjs ./
ENV NODE_ENV=production XDG_STATE_HOME=/state XDG_CACHE_HOME=/state
# Mount the data to serve at /data, read-only. The index and kept results are in /state.
VOLUME ["/state"]
WORKDIR /data
USER node
EXPOSE 8787
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s CMD ["node", "/app/healthcheck.mjs"]
ENTRYPOINT ["node", "/app/dist/cli/main.js"]
CMD ["serve", "/data", "--stdio"]
