import type { Context, Effect, Rule, Rules } from './effects.ts'
import { effectsBy, opens, path, paths, program, secrets, service } from './effects.ts'
import type { MountConfig } from './schema.ts'

type Provider = MountConfig['provider']
type ConfigOf<Name extends Provider> = Extract<MountConfig, { readonly provider: Name }>
type CommonKey = 'title' | 'description' | 'link' | 'access' | 'scopes' | 'cache' | 'poll' | 'limits'
type DocumentKey = 'skills' | 'language' | 'encodings' | 'frontMatter' | 'languages' | 'readings' | 'redact'

/** Effects of the mounts of one provider beyond reading the folder of their configuration. */
export interface ProviderEffects<Name extends Provider> {
  /** Effects of a mount with any options. Default none. */
  readonly always?: (config: ConfigOf<Name>, context: Context) => readonly Effect[]
  /** One rule for each option. */
  readonly options: Rules<Omit<ConfigOf<Name>, 'provider' | CommonKey>>
}

type None<Key extends string> = { readonly [key in Key]: 'none' }

/** Options that every mount has. */
const common: None<CommonKey> = {
  title: 'none',
  description: 'none',
  link: 'none',
  access: 'none',
  scopes: 'none',
  cache: 'none',
  poll: 'none',
  limits: 'none',
}

const documents: None<DocumentKey> = {
  language: 'none',
  encodings: 'none',
  frontMatter: 'none',
  languages: 'none',
  readings: 'none',
  redact: 'none',
  skills: 'none',
}

/** Options that let a folder serve what does not lie in it. Links of the kind "beneath" stay within the folder. */
const folderOptions = {
  root: path,
  include: 'none',
  exclude: 'none',
  gitignore: 'none',
  hidden: 'none',
  symlinks: 'none',
  hardlinks: opens('files that have a second name elsewhere'),
  allowMounts: opens('other file systems that are mounted in the folder'),
  watch: 'none',
  reconcile: 'none',
} as const

const objects = {
  ...documents,
  bucket: 'none',
  prefix: 'none',
  maxBytes: 'none',
  links: 'none',
  timeout: 'none',
  endpoint: 'none',
  insecure: 'none',
  anonymous: 'none',
} as const

const origin = {
  redirects: 'none',
  allowAddresses: 'none',
  insecure: 'none',
  types: 'none',
  maxBytes: 'none',
  timeout: 'none',
} as const

const database = {
  rows: 'none',
  watch: 'none',
  reconcile: 'none',
  connections: 'none',
  statementTimeout: 'none',
  lockTimeout: 'none',
  waitTimeout: 'none',
  idleTimeout: 'none',
} as const

type DatabaseServer = ConfigOf<'postgres'> | ConfigOf<'mysql'>

const databaseServer = {
  ...database,
  url: secrets,
  schemas: 'none',
  connectTimeout: 'none',
  tls: (tls: NonNullable<DatabaseServer['tls']>, context: Context) =>
    typeof tls === 'object' && tls.ca !== undefined ? path(tls.ca, context) : [],
  allowPrivileged: 'none',
} as const

function databaseOf({ url }: DatabaseServer): readonly Effect[] {
  return service(`the database that ${'env' in url ? `the variable ${url.env}` : `the file ${url.file}`} names`)
}

/** The effects of every provider. Types demand a rule for each provider and each of its options. */
export const mountEffects: { readonly [Name in Provider]: ProviderEffects<Name> } = {
  files: { options: { ...documents, ...folderOptions, defaultExcludes: 'none', maxBytes: 'none', rules: 'none' } },
  settings: {
    options: {
      ...folderOptions,
      dotenv: 'none',
      formats: 'none',
      show: 'none',
      allow: 'none',
      maxBytes: 'none',
      maxDepth: 'none',
      maxNodes: 'none',
      timeout: 'none',
      language: 'none',
      encodings: 'none',
    },
  },
  // pnpm installs packages as hard links to its store in the home folder.
  packages: {
    always: () => [{ kind: 'reads', what: 'files of packages that have a second name elsewhere' }],
    options: { ...documents, root: path, packages: 'none' },
  },
  prompts: { options: { ...documents, ...folderOptions, limit: 'none' } },
  // The git that is installed runs nothing of a repository (docs/security.md), so only another program is an effect.
  git: {
    options: {
      ...documents,
      repository: path,
      alternates: paths,
      git: program,
      refs: 'none',
      maxBytes: 'none',
      maxCommits: 'none',
      timeout: 'none',
      watch: 'none',
      reconcile: 'none',
    },
  },
  sqlite: { options: { ...database, file: path } },
  env: {
    always: ({ file }) => (file === undefined ? [{ kind: 'reads', what: 'the environment of the process' }] : []),
    options: { file: path, allow: 'none' },
  },
  screen: {
    always: () => [{ kind: 'reads', what: 'what the displays of this machine show' }],
    options: { program, displays: 'none', interval: 'none', timeout: 'none', maxBytes: 'none' },
  },
  inline: {
    options: {
      text: 'none',
      base64: 'none',
      mimeType: 'none',
      priority: 'none',
      audience: 'none',
      resources: 'none',
    },
  },
  results: {
    options: {
      collection: 'none',
      ttl: 'none',
      keep: 'none',
      maxBytes: 'none',
      language: 'none',
      write: 'none',
      redact: 'none',
    },
  },
  search: {
    options: {
      over: 'none',
      maxBytes: 'none',
      maxRows: 'none',
      refresh: 'none',
      embeddings: ({ openai, ollama, local }, context) => [
        ...(openai === undefined ? [] : [...service(openai.url), ...secrets(openai.key, context)]),
        ...(ollama === undefined ? [] : service(ollama.url)),
        // Without a folder the library downloads the model.
        ...(local === undefined
          ? []
          : local.folder === undefined
            ? service('the server that local models are downloaded from')
            : path(local.folder, context)),
      ],
    },
  },
  remote: {
    always: ({ command, args = [] }) => (command === undefined ? [] : program([command, ...args].join(' '))),
    options: {
      command: 'none',
      args: 'none',
      env: secrets,
      cwd: path,
      url: service,
      bearer: secrets,
      headers: secrets,
      insecure: 'none',
      refresh: 'none',
      timeout: 'none',
      maxResources: 'none',
      maxBytes: 'none',
      memory: 'none',
      // Its tools do whatever the server does.
      tools: (on) => (on ? [{ kind: 'admits', what: 'callers of the tools of the server, whatever those do' }] : []),
      prompts: 'none',
      redact: 'none',
    },
  },
  web: {
    always: ({ url }, { address }) => service(url ?? address),
    options: { ...documents, ...origin, url: 'none', pages: 'none', llms: 'none', match: 'none', fetch: 'none' },
  },
  api: {
    options: {
      ...origin,
      url: service,
      routes: 'none',
      bearer: secrets,
      headers: secrets,
      keep: 'none',
      maxEntries: 'none',
      redact: 'none',
    },
  },
  metrics: {
    options: {
      source: 'none',
      url: service,
      allowAddresses: 'none',
      allow: 'none',
      bearer: secrets,
      basic: secrets,
      insecure: 'none',
      interval: 'none',
      keep: 'none',
      maxSeries: 'none',
      maxPoints: 'none',
      maxBytes: 'none',
      timeout: 'none',
    },
  },
  s3: {
    always: ({ endpoint }) => service(endpoint ?? 'Amazon S3'),
    options: {
      ...objects,
      region: 'none',
      pathStyle: 'none',
      accessKeyId: secrets,
      secretAccessKey: secrets,
      sessionToken: secrets,
      profile: 'none',
      requesterPays: 'none',
    },
  },
  gcs: {
    always: ({ endpoint }) => service(endpoint ?? 'Google Cloud Storage'),
    options: { ...objects, keyFile: path, userProject: 'none' },
  },
  gdrive: {
    always: ({ endpoint }) => service(endpoint ?? 'Google Drive'),
    options: {
      ...documents,
      folder: 'none',
      drives: 'none',
      shared: 'none',
      shortcuts: 'none',
      clientId: secrets,
      clientSecret: secrets,
      tokenFile: path,
      key: secrets,
      subject: 'none',
      permissions: 'none',
      interval: 'none',
      maxFiles: 'none',
      maxBytes: 'none',
      timeout: 'none',
      endpoint: 'none',
    },
  },
  postgres: { always: databaseOf, options: databaseServer },
  mysql: { always: databaseOf, options: databaseServer },
}

/** Returns the effects of a mount beyond reading the folder of its configuration. */
export function effectsOfMount(config: MountConfig, context: Context): readonly Effect[] {
  const { provider, ...options } = config
  // The compiler cannot see that a provider and its own rules belong together.
  const declared = mountEffects[provider] as {
    readonly always?: (config: MountConfig, context: Context) => readonly Effect[]
    readonly options: Readonly<Record<string, Rule<never>>>
  }
  const rules = { ...common, ...declared.options } as unknown as Rules<typeof options>
  return [...(declared.always?.(config, context) ?? []), ...effectsBy(rules, options, context)]
}
