import { defined } from '../../core/kit/object.ts'
import * as z from '../../schema/builder.ts'
import { duration, glob, interval, secret, size, text } from '../../schema/fields.ts'
import { createRefuser, refusal } from '../../schema/refusals.ts'
import { allowAddresses, secretEffects, serviceEffects, withoutEffects } from '../../schema/shapes.ts'
import { refuseInTheClear, requireSecret } from '../../schema/values.ts'
import { defineSourceSchema, type OpenSource, type OptionsOf } from '../source.ts'
import type { Credentials } from './request.ts'
import { apiAddress } from './source.ts'

const url = text.refine(isApiAddress, {
  error: refusal(
    'This is not the address of an HTTP API.',
    'Write one such as "http://127.0.0.1:9090", without /api/v1, a query or a password; give credentials in "bearer" or "basic".',
  ),
})

function isApiAddress(value: string): boolean {
  try {
    return apiAddress(value) !== ''
  } catch {
    return false
  }
}

const metricsShape = {
  source: z
    .enum(['prometheus', 'self'])
    .optionalKey(
      'The source of the measurements: "prometheus" for Prometheus, or any server with the same HTTP API; "self" for this server itself. By default "prometheus".',
    ),
  url: url.optionalKey('The URL of the HTTP API of Prometheus, without /api/v1, such as "http://127.0.0.1:9090".'),
  allowAddresses: allowAddresses.describe(
    'Addresses outside the internet to which the name in "url" may lead, such as "10.0.0.0/8". An IP address in "url" and localhost are always allowed. By default none.',
  ),
  allow: z
    .array(
      glob.refine((pattern) => !pattern.includes('/'), {
        error: refusal('No metric has a slash in its path.', 'Write a name, or a glob over names such as "http_*".'),
      }),
    )
    .min(1)
    .optionalKey(
      'The metrics that are served, by name or glob, such as ["up", "http_*"]. Other metrics look missing, in queries too; alerts, rules and targets are left out. By default all metrics.',
    ),
  bearer: secret.optionalKey('The token for Prometheus, as { "env": "NAME" } or { "file": "path" }.'),
  basic: z
    .strictObject({
      user: text.describe('The name of the user.'),
      password: secret.describe('The password, as { "env": "NAME" } or { "file": "path" }.'),
    })
    .optionalKey('The user and password for Prometheus.'),
  insecure: z
    .boolean()
    .optionalKey(
      'Sends "bearer" or "basic" also over http:// to another machine. Anybody on the network path can then read them. By default false.',
    ),
  interval: interval.optionalKey(
    'Scrape interval of the source: the finest step of requests that do not name a step, and the interval at which changes are polled. With "self": the interval of measurements. By default "15s".',
  ),
  maxSeries: z.int().min(1).max(10_000).optionalKey('Maximum number of series in one answer. By default 100.'),
  maxPoints: z
    .int()
    .min(16)
    .max(11_000)
    .optionalKey('Maximum number of points of a series as JSON, unless the request names a step. By default 240.'),
  maxBytes: size.optionalKey('Maximum size of an answer of the source. By default "64MiB".'),
  timeout: duration.optionalKey('Time-out of one answer. By default "20s".'),
}

function checkMetrics(mountOptions: OptionsOf<typeof metricsShape>, context: z.RefinementCtx): void {
  const refuse = createRefuser(context)
  if (mountOptions.source !== 'self') {
    if (mountOptions.url === undefined)
      refuse('url', 'The key is missing.', 'Add it: the address of Prometheus, such as "http://127.0.0.1:9090".')
    if (mountOptions.bearer !== undefined && mountOptions.basic !== undefined)
      refuse('basic', 'There are two kinds of credentials.', 'Remove "bearer" or "basic".')
    return
  }
  for (const key of ['url', 'allow', 'allowAddresses', 'bearer', 'basic'] as const)
    if (mountOptions[key] !== undefined)
      refuse(
        key,
        'With "source": "self" the server measures itself, so this key has no use.',
        'Remove the key, or set "source" to "prometheus".',
      )
}

export const source = defineSourceSchema({
  about: 'Measurements over time: of Prometheus, or of this server itself.',
  shape: metricsShape,
  check: checkMetrics,
  effects: {
    options: {
      url: serviceEffects,
      bearer: secretEffects,
      basic: secretEffects,
      ...withoutEffects('source allowAddresses allow insecure interval maxSeries maxPoints maxBytes timeout'),
    },
  },
})

export const open: OpenSource<typeof source> = async (options, { folder, measurements }) => {
  const { interval, maxSeries, maxPoints, maxBytes, timeout, allowAddresses } = options
  const common = defined({ intervalMs: interval, maxSeries, maxPoints })
  const { metrics } = await import('./index.ts')
  if (options.source === 'self') return metrics({ ...common, source: 'self', ...defined({ measurements }) })
  return metrics({
    ...common,
    url: options.url ?? '',
    credentials: await credentialsIn(options, folder),
    ...defined({ allowAddresses, allow: options.allow, timeoutMs: timeout, maxBytes }),
  })
}

/** @throws ResourceError `invalid` for a missing secret, and for one that would be sent unencrypted to another machine. */
async function credentialsIn(
  { bearer, basic, url = '', insecure }: OptionsOf<(typeof source)['shape']>,
  folder: string,
): Promise<Credentials | undefined> {
  if (bearer === undefined && basic === undefined) return undefined
  refuseInTheClear(url, insecure)
  if (bearer !== undefined) return { bearer: await requireSecret('bearer', bearer, folder) }
  return basic && { user: basic.user, password: await requireSecret('basic.password', basic.password, folder) }
}
