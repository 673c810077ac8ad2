import { isLoopback } from '../core/host.ts'
import type { Context, Effect, Rules } from './effects.ts'
import { effectsBy, path, secrets, service } from './effects.ts'
import type { ConfigFile } from './schema.ts'

type Http = NonNullable<ConfigFile['http']>
type Auth = NonNullable<Http['auth']>

const admits = (what: string): readonly Effect[] => [{ kind: 'admits', what }]

const auth: Rules<Auth> = {
  resource: 'none',
  issuers: (issuers, context) =>
    issuers.flatMap(({ jwks, introspection }) => [
      ...(jwks === undefined ? [] : service(jwks)),
      ...(introspection === undefined ? [] : service(introspection.url)),
      ...secrets(introspection?.clientSecret, context),
    ]),
  scopes: 'none',
  implies: 'none',
  tokens: path,
}

const http: Rules<Http> = {
  listen: ({ host }) => (isLoopback(host) ? [] : admits(`other machines, at ${host}`)),
  path: 'none',
  // A name that leads here lets the pages of its owner ask (DNS rebinding).
  allowedHosts: (hosts) => hosts.flatMap((host) => admits(`whoever asks for ${host}`)),
  allowedOrigins: (origins) => origins.flatMap((origin) => admits(`web pages of ${origin}`)),
  auth: (value, context) => effectsBy(auth, value, context),
  explorer: 'none',
  metrics: 'none',
  public: 'none',
  contentLinks: 'none',
  sse: 'none',
  limits: 'none',
}

const store: Rules<NonNullable<ConfigFile['store']>> = {
  sqlite: (file) => [{ kind: 'writes', what: file }],
  postgres: (source, context) => [...service('the database of the store'), ...secrets(source, context)],
  schema: 'none',
  connections: 'none',
}

const settings: Rules<Omit<ConfigFile, 'mounts'>> = {
  $schema: 'none',
  name: 'none',
  instructions: 'none',
  overview: 'none',
  http: (value, context) => effectsBy(http, value, context),
  clients: 'none',
  context: 'none',
  roles: 'none',
  audit: ({ file }) => [{ kind: 'writes', what: file }],
  pages: 'none',
  changes: 'none',
  spill: 'none',
  store: (value, context) => effectsBy(store, value, context),
  // It makes nothing but rows in the store, and what the store does is judged there.
  replicas: 'none',
  cursorSecret: secrets,
}

/** Every rule for settings outside mounts, by key; those of `http` and `http.auth` likewise. */
export const settingEffects = { settings, http, auth, store } as const

/** Returns the effects of settings outside `mounts` beyond reading the folder of the configuration. */
export function effectsOfSetting(values: Partial<Omit<ConfigFile, 'mounts'>>, context: Context): readonly Effect[] {
  return effectsBy(settings as Rules<typeof values>, values, context)
}
