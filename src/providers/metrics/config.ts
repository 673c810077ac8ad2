import * as z from '../../schema/builder.ts'
import { secrets, service } from '../../schema/effects.ts'
import { duration, glob, interval, secret, size, text } from '../../schema/fields.ts'
import { allowAddresses } from '../../schema/origin.ts'
import { refusal } from '../../schema/refusals.ts'
import { defineSource } from '../source.ts'
import { apiAddress } from './address.ts'

const url = text.refine(isApiAddress, {
  error: refusal(
    'This is not the address of an HTTP API.',
    'Write one such as "http://127.0.0.1:9090", without /api/v1, a query or a password; credentials are "bearer" or "basic".',
  ),
})

function isApiAddress(value: string): boolean {
  try {
    return apiAddress(value) !== ''
  } catch {
    return false
  }
}

/** The options of a mount whose provider is `metrics`. */
export const metricsShape = {
  source: z
    .enum(['prometheus', 'self'])
    .exactOptional()
    .describe(
      'Where the measurements come from: "prometheus", or whatever has its HTTP API; "self", this server itself. By default "prometheus".',
    ),
  url: url
    .exactOptional()
    .describe('Where the HTTP API of Prometheus is, without /api/v1, such as "http://127.0.0.1:9090".'),
  allowAddresses: allowAddresses.describe(
    'Addresses that the name in "url" may lead to though they are not on the internet, such as "10.0.0.0/8". An address in "url", and localhost, need none. By default none.',
  ),
  allow: z
    .array(
      glob.refine((pattern) => !pattern.includes('/'), {
        error: refusal('No metric has a slash in its path.', 'Write a name, or a glob over names such as "http_*".'),
      }),
    )
    .min(1)
    .exactOptional()
    .describe(
      'The metrics that are served, by name or glob, such as ["up", "http_*"]. Every other metric is as if it were not there, for queries too; alerts, rules and targets are left out. By default all are served.',
    ),
  bearer: secret
    .exactOptional()
    .describe('Where the token is that it asks for: { "env": "NAME" } or { "file": "path" }.'),
  basic: z
    .strictObject({
      user: text.describe('The name of the user.'),
      password: secret.describe('Where the password is.'),
    })
    .exactOptional()
    .describe('The user and password that it asks for.'),
  insecure: z
    .boolean()
    .exactOptional()
    .describe(
      'Sends "bearer" or "basic" also to an http:// address beyond this machine: whoever is on the way there can read them. By default false.',
    ),
  interval: interval
    .exactOptional()
    .describe(
      'How far apart samples are (the scrape interval): no finer step is chosen, and so often it is looked for changes. Of "self": how often it is measured. By default "15s".',
    ),
  keep: duration
    .refine((ms) => ms >= 60_000 && ms <= 366 * 86_400_000, {
      error: refusal('This is too short or too long.', 'It must be from "1m" to "366d".'),
    })
    .exactOptional()
    .describe('How long the measurements of "self" are kept, in the store. By default "1d".'),
  maxSeries: z.int().min(1).max(10_000).exactOptional().describe('How many series are shown at once. By default 100.'),
  maxPoints: z
    .int()
    .min(16)
    .max(11_000)
    .exactOptional()
    .describe('How many points of a series are shown, unless a step is asked for. By default 240.'),
  maxBytes: size.exactOptional().describe('The longest answer that is taken. By default "64MiB".'),
  timeout: duration.exactOptional().describe('How long one answer may take. By default "20s".'),
}

interface Given {
  readonly source?: 'prometheus' | 'self'
  readonly url?: string
  readonly allow?: readonly string[]
  readonly bearer?: unknown
  readonly basic?: unknown
  readonly allowAddresses?: unknown
  readonly keep?: number
}

/** Whether a mount has what its source needs, and nothing that it does not know. */
function checkMetrics(given: Given, context: z.RefinementCtx): void {
  const refuse = (path: string, message: string, fix: string) =>
    context.addIssue({ code: 'custom', path: [path], message: refusal(message, fix) })
  if (given.source !== 'self') {
    if (given.url === undefined)
      refuse('url', 'The key is missing.', 'Add it: the address of Prometheus, such as "http://127.0.0.1:9090".')
    if (given.keep !== undefined) refuse('keep', 'Prometheus keeps its samples itself.', 'Remove it.')
    if (given.bearer !== undefined && given.basic !== undefined)
      refuse('basic', 'There are two kinds of credentials.', 'Remove "bearer" or "basic".')
    return
  }
  for (const key of ['url', 'allow', 'allowAddresses', 'bearer', 'basic'] as const)
    if (given[key] !== undefined) refuse(key, 'This server measures itself: nothing else is asked.', 'Remove it.')
}

export const source = defineSource({
  about: 'Measurements over time: of Prometheus, or of this server itself.',
  shape: metricsShape,
  check: checkMetrics,
  effects: {
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
})
