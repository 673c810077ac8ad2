import { resolve } from 'node:path'
import * as z from '../schema/builder.ts'
import { count, globs, interval, secret, secretRefusal, size, text } from '../schema/fields.ts'
import { refusal } from '../schema/refusals.ts'
import { resolveSecret } from '../schema/values.ts'
import { type Finding, servedFileFinding } from './problem.ts'
import { httpSchema, loadMountSchemas, type MountConfig, type OutsideSources } from './schema-parts.ts'
import { type ConfigEnvironment, storeSchema } from './store.ts'

/** Cursors of these secrets are accepted at the same time. */
const maxSecrets = 4

const minSecretBytes = 16

/** The first secret seals new cursors. Any of them opens cursors. */
const cursorSecrets = z.union([z.array(secret).min(1).max(maxSecrets), secret], {
  error: ({ input }) => secretRefusal(input),
})

export async function loadCursorSecrets(value: unknown, { folder, env, servedBy }: ConfigEnvironment) {
  const values: string[] = []
  const findings: Finding[] = []
  for (const [index, item] of (Array.isArray(value) ? value : [value]).entries()) {
    const { data: source } = secret.safeParse(item)
    if (source === undefined) continue
    const path = Array.isArray(value) ? ['cursorSecret', index] : ['cursorSecret']
    const secretValue = await resolveSecret(source, { folder, env })
    const address = 'file' in source ? servedBy(resolve(folder, source.file)) : undefined
    if ('message' in secretValue) findings.push({ path, message: secretValue.message, fix: secretValue.fix })
    else if (Buffer.byteLength(secretValue.value) < minSecretBytes)
      findings.push({
        path,
        message: `The secret is shorter than ${minSecretBytes} bytes.`,
        fix: 'Use a random one, such as the output of: openssl rand -hex 32.',
      })
    else if (address !== undefined) findings.push(servedFileFinding(path, 'The file with the secret', address))
    else values.push(secretValue.value)
  }
  return { values, findings }
}

const names = z.union([text, z.array(text).min(1)], {
  error: refusal(
    'This is not the name of a client.',
    'Write one such as "Zed", or an array of them; "*" stands for anything.',
  ),
})

const profile = z.strictObject({
  name: names.describe(
    'The name that the client sends, such as "Zed" or "cursor-*": "*" stands for any text, and case makes no difference.',
  ),
  version: names.optionalKey('The version that the client sends, such as "1.*". By default any.'),
  tools: z
    .union([z.boolean(), z.literal('chatgpt')], {
      error: refusal('This is not a choice of tools.', 'Write true, false or "chatgpt".'),
    })
    .optionalKey(
      'true: the client gets the tools that read resources; "chatgpt": it gets only the tools search and fetch. By default as `clients.tools`.',
    ),
  list: z
    .strictObject({
      mounts: z.array(text).min(1).optionalKey('The addresses of the mounts that the client sees. By default all.'),
      match: globs.optionalKey('Globs of the paths that the client sees. By default all.'),
      most: z
        .union([z.int().min(1), z.literal('all')], {
          error: refusal('This is not a number of resources.', 'Write a whole number, at least 1, or "all".'),
        })
        .optionalKey(
          'Maximum number of listed resources, the most important first; "all" ignores the known limit of a host. By default the known limit of the host, else all.',
        ),
    })
    .optionalKey(
      'The resources that the client sees in lists, directories and completions. This is not an access rule: the client can still read the other resources by URI.',
    ),
})

export const clientsSchema = z.strictObject({
  tools: z
    .enum(['auto', 'on', 'off', 'chatgpt'])
    .optionalKey(
      'Which clients get the tools for reading, such as list_resources, read_resource and search_resources. "on": all clients; "off": only the explorer; "auto": all clients, except those whose model is known to list, read and search resources by itself (ChatGPT also gets search and fetch); "chatgpt": all clients get the tools search and fetch instead, as ChatGPT connectors require. By default "auto".',
    ),
  profiles: z
    .array(profile)
    .optionalKey('Settings for some clients, by the name that they send. The first match applies.'),
})

/** The schemas of the settings outside `mounts`, by key. */
export const settingsShape = {
  $schema: z.string().optionalKey('The path or URL of the JSON schema, for editors.'),
  name: text.optionalKey('The name of the server that clients see. By default "hikidashi".'),
  instructions: text.optionalKey(
    'The text that clients may give to a model about this server. By default a text of at most 120 words: which mounts there are, and how to search and read them.',
  ),
  overview: z
    .boolean()
    .optionalKey(
      'Lists hikidashi://overview first: a resource that describes the mounts, their size and how current they are. By default true.',
    ),
  http: httpSchema.optionalKey('Settings for HTTP.'),
  clients: clientsSchema.optionalKey('Settings for clients, by the name that they send.'),
  context: z
    .strictObject({
      prompt: z
        .boolean()
        .optionalKey(
          'Offers the prompt `assemble_context`, which asks a question together with the resources that help with it. By default true.',
        ),
      hook: z
        .boolean()
        .optionalKey(
          'Answers the hooks of hosts with a context for each prompt, if a host has such a hook. By default true.',
        ),
    })
    .optionalKey('Contexts that are assembled for clients.'),
  roles: z
    .array(text)
    .optionalKey(
      'The roles of callers that do not authenticate: on stdio, and over HTTP without `http.auth`. By default none.',
    ),
  audit: z
    .strictObject({
      file: text.describe(
        'The file of the records, one record a line. A relative path starts at the configuration file.',
      ),
      maxBytes: size.optionalKey(
        'Size at which the file is renamed to FILE.1 and a new one begins. By default "64MiB".',
      ),
      keep: z.int().min(0).optionalKey('How many renamed files are kept. By default 5.'),
    })
    .optionalKey('The audit log: a record of each access with caller, URI and outcome, without content and tokens.'),
  pages: z
    .strictObject({
      first: count.optionalKey('Number of entries on the first page of a list. By default 1024.'),
      most: count.optionalKey('Each next page has 32 times as many entries, up to this number. By default 16000.'),
      bytes: size.optionalKey('Approximate maximum size of a page. By default "4MiB".'),
      scan: count.optionalKey('Maximum number of entries that are looked at for one page. By default 100000.'),
    })
    .optionalKey('The length of the pages of lists.'),
  changes: z
    .strictObject({
      perSubscription: count.optionalKey(
        'Maximum number of URIs of one subscription: one `subscriptions/listen`, or all of a session or pipe. By default 1000.',
      ),
      perPrincipal: count.optionalKey(
        'Maximum number of URIs of all subscriptions of one principal. By default 20000.',
      ),
      total: count.optionalKey('Maximum number of URIs of all subscriptions. By default 200000.'),
      subscriptions: count.optionalKey('Maximum number of subscriptions of one principal. By default 1000.'),
      totalSubscriptions: count.optionalKey('Maximum number of subscriptions. By default 10000.'),
    })
    .optionalKey('Limits of subscriptions.'),
  events: z
    .strictObject({
      dialect: z
        .enum(['sep', 'sketch'])
        .optionalKey(
          'The form of the Events extension: "sep" (SEP-3415), or "sketch" (its earlier sketch, for ChatGPT and older clients). By default "sep".',
        ),
      webhooks: z
        .strictObject({
          allowAddresses: z
            .array(text)
            .optionalKey(
              'Addresses outside the internet to which messages may go, such as "10.0.0.0/8". By default none.',
            ),
          lifetime: interval.optionalKey(
            'Maximum time after which a client must refresh a subscription. By default "1h".',
          ),
          perPrincipal: count.optionalKey('Maximum number of subscriptions of one principal. By default 100.'),
          total: count.optionalKey('Maximum number of subscriptions. By default 10000.'),
        })
        .optionalKey('Sends events to the https endpoints of authenticated clients. By default no request goes out.'),
    })
    .optionalKey('Events, by which clients learn what changed.'),
  spill: z
    .strictObject({
      tokens: count.optionalKey(
        'Approximate number of tokens above which the result of a tool is kept as a resource. By default 8000.',
      ),
      keep: interval.optionalKey('How long a long result is kept. By default "1h".'),
      maxResults: count.optionalKey(
        'Maximum number of results of one principal; the oldest are dropped. By default 100.',
      ),
      maxBytes: size.optionalKey('Maximum size of all results of one principal. By default "16MiB".'),
      maxTotalBytes: size.optionalKey('Maximum size of all results of all principals. By default "64MiB".'),
    })
    .optionalKey(
      'Long results of the tools of other servers ("tools" of a remote mount). They are kept at spill://results: in memory, or with "replicas" in the store.',
    ),
  store: storeSchema.optionalKey(
    'The database of the server itself: results, the index of searches, and other data that it keeps.',
  ),
  linkedRoots: z
    .boolean()
    .optionalKey(
      'Follows symbolic links in the paths of mounts ("root", "repository", "file"). false: no link below the folder of the configuration is followed, as in a configuration that "hikidashi init" writes. A configuration that you have not trusted never leaves its folder by a link. By default true.',
    ),
  replicas: z
    .boolean()
    .optionalKey(
      'Set this if several processes serve this configuration at once. They tell each other of changes through the store, and one at a time polls each source. They need the same "store" and the same "cursorSecret". By default false.',
    ),
  experimental: z
    .strictObject({
      resourceOperations: z
        .boolean()
        .optionalKey(
          'Declares the draft extension io.modelcontextprotocol/resource-operations (2026-07-28): resources/stat, and refusals of create, update and delete. By default false.',
        ),
    })
    .optionalKey('Drafts of the protocol, which may change.'),
  cursorSecret: cursorSecrets.optionalKey(
    'The secret that authenticates the cursors of lists, as { "env": "NAME" } or { "file": "path" }. In a list of up to four, the first secret makes cursors and all of them verify cursors, so that you can replace a secret while clients hold cursors. Replicas need the same secret. By default a new secret at each start, which invalidates the cursors that clients hold.',
  ),
}

function createMountsSchema(mount: z.Schema<MountConfig>) {
  return z
    .record(z.string(), mount)
    .refine((mounts) => Object.keys(mounts).length > 0, {
      error: refusal(
        'Nothing is mounted.',
        'Add a mount, such as "file:///docs": { "provider": "files", "root": "docs" }.',
      ),
    })
    .describe(
      'The sources that are served, each with an address: a URI prefix such as "file:///docs" or "docs://manual". No address may equal another or lie below it.',
    )
}

/**
 * Returns the schema of `hikidashi.json`, given the schema of a mount. `config.schema.json` is generated from its
 * descriptions. The loader checks facts of the machine, such as whether a folder exists.
 */
export function configSchemaOf(mount: z.Schema<MountConfig>) {
  const { $schema, name, instructions, ...others } = settingsShape
  return z.strictObject({ $schema, name, instructions, mounts: createMountsSchema(mount), ...others })
}

export async function loadConfigSchema(outside?: OutsideSources) {
  return configSchemaOf((await loadMountSchemas(undefined, outside)).mount)
}

/** Durations are in milliseconds, sizes in bytes. */
export type ConfigFile = z.output<ReturnType<typeof configSchemaOf>>

export type { MountConfig } from './schema-parts.ts'

export type ClientsConfig = z.output<typeof clientsSchema>
