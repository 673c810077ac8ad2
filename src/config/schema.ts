import { resolve } from 'node:path'
import * as z from '../schema/builder.ts'
import { count, globs, interval, secret, secretFault, size, text } from '../schema/fields.ts'
import { refusal } from '../schema/refusals.ts'
import { resolveSecret } from '../schema/secret.ts'
import { http } from './http-schema.ts'
import { loadMountSchemas, type MountConfig } from './mount-schema.ts'
import type { Finding } from './problem.ts'
import { store } from './store.ts'

/** The most secrets that open cursors at once. */
const maxSecrets = 4

/** The shortest secret that is taken, in bytes: half of the key of HMAC-SHA-256. */
const minSecretBytes = 16

/** One secret, or several: the first makes cursors, and all of them open them. */
const cursorSecrets = z.union([z.array(secret).min(1).max(maxSecrets), secret], {
  error: ({ input }) => secretFault(input),
})

interface Surroundings {
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** The address of the mount that serves a file, if one does. */
  readonly servedBy: (file: string) => string | undefined
}

/** Fetches the secrets of cursors, in their order, and finds what is wrong with them. */
export async function loadCursorSecrets(value: unknown, { folder, env, servedBy }: Surroundings) {
  const values: string[] = []
  const findings: Finding[] = []
  for (const [index, given] of (Array.isArray(value) ? value : [value]).entries()) {
    const { data: source } = secret.safeParse(given)
    if (source === undefined) continue
    const path = Array.isArray(value) ? ['cursorSecret', index] : ['cursorSecret']
    const found = await resolveSecret(source, { folder, env })
    const address = 'file' in source ? servedBy(resolve(folder, source.file)) : undefined
    if ('message' in found) findings.push({ path, message: found.message, fix: found.fix })
    else if (Buffer.byteLength(found.value) < minSecretBytes)
      findings.push({
        path,
        message: `The secret is shorter than ${minSecretBytes} bytes.`,
        fix: 'Use a random one, such as the output of: openssl rand -hex 32.',
      })
    else if (address !== undefined)
      findings.push({
        path,
        message: `The file with the secret lies in the folder that ${JSON.stringify(address)} serves.`,
        fix: 'Move it to a place that is not served.',
      })
    else values.push(found.value)
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
    'What the client calls itself, such as "Zed" or "cursor-*": "*" stands for anything, capitals make no difference.',
  ),
  version: names.exactOptional().describe('Its version, likewise: "1.*". By default any.'),
  tools: z
    .union([z.boolean(), z.literal('chatgpt')], {
      error: refusal('This does not say which tools a client gets.', 'Write true, false or "chatgpt".'),
    })
    .exactOptional()
    .describe(
      'Whether it is given the tools that read resources; "chatgpt": the tools search and fetch alone. By default as `clients.tools` says.',
    ),
  list: z
    .strictObject({
      mounts: z
        .array(text)
        .min(1)
        .exactOptional()
        .describe('The addresses of the mounts that it is shown. By default all.'),
      match: globs.exactOptional().describe('The paths that it is shown. By default all.'),
      most: z
        .union([z.int().min(1), z.literal('all')], {
          error: refusal('This is not a number of resources.', 'Write a whole number, at least 1, or "all".'),
        })
        .exactOptional()
        .describe(
          'How many resources it is listed at most, the most important ones first; "all" lifts the limit that a host is known to have. By default as the host takes, else all.',
        ),
    })
    .exactOptional()
    .describe(
      'What it is shown where things are listed, browsed and completed. It is no access rule: by its URI it can read the rest too.',
    ),
})

export const clients = z.strictObject({
  tools: z
    .enum(['auto', 'on', 'off', 'chatgpt'])
    .exactOptional()
    .describe(
      'Who is given the tools list_resources, browse_directory, read_resource, search_resources, browse and assemble_context: "on", everybody; "off", nobody but the explorer; "auto", every client but those in which a model is known to list, read and search resources by itself (ChatGPT gets search and fetch besides); "chatgpt": everybody is given the tools search and fetch instead, as ChatGPT connectors want them. By default "auto".',
    ),
  profiles: z
    .array(profile)
    .exactOptional()
    .describe('What some clients are given, by what they call themselves. The first that matches counts.'),
})

/** The settings of a configuration beside its mounts. */
export const settingsShape = {
  $schema: z.string().exactOptional().describe('Where this schema is, for editors.'),
  name: text.exactOptional().describe('What the server calls itself to clients. By default "hikidashi".'),
  instructions: text
    .exactOptional()
    .describe(
      'What clients may tell a model about this server and how to use it. By default what is mounted, and how to search and read it, in at most 120 words.',
    ),
  overview: z
    .boolean()
    .exactOptional()
    .describe(
      'Whether the list of resources begins with hikidashi://overview, which says what is mounted, how much of it there is and how fresh that is. By default true.',
    ),
  http: http.exactOptional().describe('How it is served over HTTP.'),
  clients: clients.exactOptional().describe('What clients are given by what they call themselves.'),
  context: z
    .strictObject({
      prompt: z
        .boolean()
        .exactOptional()
        .describe(
          'Whether there is a prompt `assemble_context`, which asks a question with what helps with it. By default true.',
        ),
    })
    .exactOptional()
    .describe('How contexts are assembled for clients.'),
  roles: z
    .array(text)
    .exactOptional()
    .describe(
      'The roles of whoever asks where nobody is asked to say who they are: on stdio, and over HTTP without `http.auth`. By default none.',
    ),
  audit: z
    .strictObject({
      file: text.describe('The file that records go to, one a line. A relative path starts at this file.'),
      maxBytes: size
        .exactOptional()
        .describe('How long it may become before it is put aside, as FILE.1. By default "64MiB".'),
      keep: z.int().min(0).exactOptional().describe('How many of those are kept. By default 5.'),
    })
    .exactOptional()
    .describe('Keeps a record of who asked for what, and what came of it: never of content, and never of tokens.'),
  pages: z
    .strictObject({
      first: count.exactOptional().describe('How many entries the first page of a list has. By default 250.'),
      most: count.exactOptional().describe('Each next page has 32 times as many, up to this. By default 16000.'),
      bytes: size.exactOptional().describe('About how long a page may be. By default "4MiB".'),
      scan: count.exactOptional().describe('How many entries are looked at for one page at most. By default 100000.'),
    })
    .exactOptional()
    .describe('How long the pages of lists are.'),
  changes: z
    .strictObject({
      perSubscription: count
        .exactOptional()
        .describe(
          'How many URIs one subscription may have: one `subscriptions/listen`, or all of a session or pipe. By default 1000.',
        ),
      perPrincipal: count
        .exactOptional()
        .describe('How many URIs all subscriptions of one principal may have together. By default 20000.'),
      total: count.exactOptional().describe('How many URIs all subscriptions may have together. By default 200000.'),
      subscriptions: count.exactOptional().describe('How many subscriptions one principal may have. By default 1000.'),
      totalSubscriptions: count.exactOptional().describe('How many subscriptions there may be. By default 10000.'),
    })
    .exactOptional()
    .describe('How much clients may listen to.'),
  spill: z
    .strictObject({
      tokens: count
        .exactOptional()
        .describe(
          'About how many tokens the result of a tool may have before it is kept as a resource. By default 8000.',
        ),
      keep: interval.exactOptional().describe('For how long such a result is kept. By default "1h".'),
      maxResults: count
        .exactOptional()
        .describe('How many are kept for one principal; the oldest make room. By default 100.'),
      maxBytes: size.exactOptional().describe('How large those of one principal may be together. By default "16MiB".'),
      maxTotalBytes: size.exactOptional().describe('How large those of all may be together. By default "64MiB".'),
    })
    .exactOptional()
    .describe(
      'Long results of the tools of other servers ("tools" of a remote mount): they are kept in memory, or with "replicas" in the store, at spill://results.',
    ),
  store: store
    .exactOptional()
    .describe('Where what the server itself remembers is kept: results, its own measurements, and what is searched.'),
  replicas: z
    .boolean()
    .exactOptional()
    .describe(
      'Whether several processes serve this configuration at once. Then they tell each other of changes through the store, and one at a time polls a source that has to be polled. They need the same "store" and the same "cursorSecret". By default false.',
    ),
  cursorSecret: cursorSecrets
    .exactOptional()
    .describe(
      'Where the secret is that authenticates the cursors of lists: { "env": "NAME" } or { "file": "path" }. A list of up to four: the first makes cursors, and all of them take them, so that a secret can be replaced while clients hold cursors. Replicas share it. By default a new one at each start, which ends the cursors that clients hold.',
    ),
}

/** Returns the schema of `mounts`, by the schema of a mount. */
function mountsOf(mount: z.Schema<MountConfig>) {
  return z
    .record(z.string(), mount)
    .refine((mounts) => Object.keys(mounts).length > 0, {
      error: refusal(
        'Nothing is mounted.',
        'Add a mount, such as "file:///docs": { "provider": "files", "root": "docs" }.',
      ),
    })
    .describe(
      'What is served: an address (a URI prefix, such as "file:///docs" or "docs://manual") for each source. No address lies at or under another.',
    )
}

/**
 * Returns the schema of `hikidashi.json`, by the schema of a mount. Every key has a description, from which `config.schema.json` is
 * generated. The loader checks what depends on the machine: whether a folder exists, whether a variable is set.
 */
export function configSchemaOf(mount: z.Schema<MountConfig>) {
  const { $schema, name, instructions, ...others } = settingsShape
  return z.strictObject({ $schema, name, instructions, mounts: mountsOf(mount), ...others })
}

/** Loads the schema of `hikidashi.json` with all sources that there are. */
export async function loadConfigSchema() {
  return configSchemaOf((await loadMountSchemas()).mount)
}

/** A configuration as it was written, once it is parsed: durations in milliseconds, sizes in bytes, defaults filled in. */
export type ConfigFile = z.output<ReturnType<typeof configSchemaOf>>

export type { MountConfig } from './mount-schema.ts'

export type ClientsConfig = z.output<typeof clients>
