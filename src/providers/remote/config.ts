import { defined } from '../../core/kit/object.ts'
import { parseUri } from '../../core/uri.ts'
import * as z from '../../schema/builder.ts'
import { durationFrom, interval, secret, size, text } from '../../schema/fields.ts'
import { createRefuser, refusal } from '../../schema/refusals.ts'
import {
  documentsShape,
  pathEffects,
  programEffects,
  secretEffects,
  serviceEffects,
  withoutEffects,
} from '../../schema/shapes.ts'
import { refuseInTheClear, requireSecret, resolveConfigPath, type SecretSource } from '../../schema/values.ts'
import { defineSourceSchema, type OpenSource, type OptionsOf } from '../source.ts'

const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, {
  error: refusal('This is not the name of a variable.', 'Write one such as "API_TOKEN".'),
})

const headerName = z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, {
  error: refusal('This is not the name of a header.', 'Write one such as "Authorization".'),
})

const leastMemoryBytes = 16 * 1024 * 1024

const remoteShape = {
  command: text.optionalKey('The command that starts the server, which then speaks over stdin and stdout.'),
  args: z
    .array(z.string())
    .optionalKey('The arguments of the command. Do not put secrets here: other processes can see them.'),
  env: z
    .record(
      variable,
      z.union([text, secret], {
        error: refusal(
          'This is not the value of a variable.',
          'Write a text, { "env": "NAME" } or { "file": "path" }.',
        ),
      }),
    )
    .optionalKey(
      'Environment variables of the command. Of the environment of this process it gets only PATH, HOME and the like. A secret value is { "env": "NAME" } or { "file": "path" }.',
    ),
  cwd: text.optionalKey(
    'The working folder of the command. A relative path starts at the configuration file. By default the folder of the configuration file.',
  ),
  url: text
    .refine(isServerUrl, {
      error: refusal(
        'This is not the URL of an MCP server.',
        'Write one such as "https://mcp.example.org/mcp", without a user or password; credentials are "bearer" or "headers".',
      ),
    })
    .optionalKey('The URL of the server, over HTTP.'),
  bearer: secret.optionalKey('The token for the server, as { "env": "NAME" } or { "file": "path" }.'),
  headers: z
    .record(headerName, secret)
    .optionalKey('Headers of every request. Each value is { "env": "NAME" } or { "file": "path" }.'),
  insecure: z
    .boolean()
    .optionalKey(
      'Sends "bearer" or "headers" also over http:// to another machine. Anybody on the network path can then read them. By default false.',
    ),
  refresh: interval.optionalKey(
    'How long a listing is cached if the server does not report changes. By default "30s".',
  ),
  timeout: durationFrom('100ms').optionalKey('Time-out of one answer of the server. By default "30s".'),
  maxResources: z
    .int()
    .min(1)
    .max(1_000_000)
    .optionalKey('Maximum number of resources that the server may list. By default 200000.'),
  maxBytes: size.optionalKey('Maximum size of an answer. By default "64MiB" over HTTP, and "10MiB" from a command.'),
  memory: size
    .refine((bytes) => bytes >= leastMemoryBytes, {
      error: refusal('The size is too small.', 'It must be at least "16MiB".'),
    })
    .optionalKey(
      'Maximum memory of the command and all processes that it starts, except on Windows. Beyond it they are killed; the next use starts the command again. By default "4GiB".',
    ),
  prompts: z.boolean().optionalKey('Also offers the prompts of the server. By default true.'),
  tools: z
    .boolean()
    .optionalKey('Also offers the tools of the server, to callers who may see the mount. By default false.'),
  redact: documentsShape.redact,
}

/** Pattern of the names of variables whose values are probably secrets. */
const secretName = /(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|PWD|APIKEY|KEY|CREDENTIALS?|AUTH)(?:_|$)/i

function checkRemote(mountOptions: OptionsOf<typeof remoteShape>, context: z.RefinementCtx): void {
  const refuse = createRefuser(context)
  const { command, url, env = {} } = mountOptions
  if (command === undefined && url === undefined)
    refuse('command', 'The key is missing.', 'Add "command" to start a server, or "url" for a server that runs.')
  if (command !== undefined && url !== undefined)
    refuse('url', '"command" and "url" exclude each other.', 'Remove one of them, or write a mount for each server.')
  const others =
    url === undefined ? (['bearer', 'headers', 'insecure'] as const) : (['args', 'env', 'cwd', 'memory'] as const)
  for (const key of others)
    if (mountOptions[key] !== undefined && (command === undefined) !== (url === undefined))
      refuse(
        key,
        `This key needs ${url === undefined ? '"url"' : '"command"'}, which this mount does not have.`,
        'Remove it.',
      )
  for (const [name, value] of Object.entries(env))
    if (typeof value === 'string' && secretName.test(name))
      refuse(
        ['env', name],
        'This looks like a literal secret.',
        'Put it into an environment variable or a file of its own, and write { "env": "NAME" } or { "file": "path" }.',
      )
}

export const source = defineSourceSchema({
  about: 'Another MCP server. Its resources appear below this address.',
  shape: remoteShape,
  check: checkRemote,
  effects: {
    always: ({ command, args = [] }) => (command === undefined ? [] : programEffects([command, ...args].join(' '))),
    options: {
      env: secretEffects,
      cwd: pathEffects,
      url: serviceEffects,
      bearer: secretEffects,
      headers: secretEffects,
      // The tools can do anything that the server can.
      tools: (on) => (on ? [{ kind: 'admits', what: 'callers of the tools of the server, whatever those do' }] : []),
      ...withoutEffects('command args insecure refresh timeout maxResources maxBytes memory prompts redact'),
    },
  },
})

function isServerUrl(text: string): boolean {
  try {
    const { scheme, authority } = parseUri(text)
    return (scheme === 'http' || scheme === 'https') && authority !== ''
  } catch {
    return false
  }
}

/** Opens another MCP server. It is started, or connected to, at the first request. */
export const open: OpenSource<typeof source> = async (options, { address, folder, log, spill, redaction }) => {
  const { refresh, timeout, maxResources, maxBytes, memory, prompts, tools, redact = 'off' } = options
  const { remote } = await import('./index.ts')
  const provider = remote({
    target: await targetIn(options, folder),
    address,
    log,
    ...defined({ refreshMs: refresh, timeoutMs: timeout, maxResources, maxBytes, memoryBytes: memory, prompts, tools }),
  })
  const clean =
    redact === 'off'
      ? provider
      : (await import('../../wrap/redacted.ts')).redacted(provider, { ...(await redaction()), mode: redact })
  if (spill === undefined || provider.tools === undefined) return clean
  // Results are redacted before they are stored.
  return (await import('../../wrap/spilled.ts')).spilled(clean, spill)
}

/** @throws ResourceError `invalid` for a missing secret, and for one that others could read on the network path. */
async function targetIn(options: OptionsOf<(typeof source)['shape']>, folder: string) {
  const { command, args, url } = options
  if (url === undefined) {
    const env = await resolveSecretValues('env', options.env ?? {}, folder)
    const cwd = options.cwd === undefined ? folder : resolveConfigPath(options.cwd, folder)
    return { command: command ?? '', cwd, env, ...defined({ args }) }
  }
  const { bearer, headers = {}, insecure } = options
  const hasSecrets = bearer !== undefined || Object.keys(headers).length > 0
  if (hasSecrets) refuseInTheClear(url, insecure)
  const sent = await resolveSecretValues('headers', headers, folder)
  if (bearer !== undefined) sent.Authorization = `Bearer ${await requireSecret('bearer', bearer, folder)}`
  return { url, headers: sent }
}

async function resolveSecretValues(
  key: string,
  secretSources: Readonly<Record<string, string | SecretSource>>,
  folder: string,
): Promise<Record<string, string>> {
  const values: Record<string, string> = {}
  for (const [name, value] of Object.entries(secretSources))
    values[name] = typeof value === 'string' ? value : await requireSecret(`${key}.${name}`, value, folder)
  return values
}
