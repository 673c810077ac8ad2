import * as z from './builder.ts'
import { access, count, duration, interval, link, scopes, text } from './fields.ts'
import { refusal } from './refusals.ts'

/** Keys common to the mounts of all providers. */
export const mountShape = {
  title: text.exactOptional().describe('The name of the mount for people.'),
  description: text.exactOptional().describe('A description of the mount, for people and models.'),
  link: link
    .exactOptional()
    .describe(
      'The web page of a resource, for people: a URL with {+path}, such as "https://forge.example/blob/main/{+path}". In a git mount {ref} is the branch and {+path} the rest: "https://forge.example/blob/{ref}/{+path}". By default there is no link.',
    ),
  access: access
    .exactOptional()
    .describe(
      'Access rules: names of roles that may see the whole mount, or objects with paths. A path is denied if no rule allows it, or if any rule denies it. Denied and missing look the same to the caller. Without this key every caller sees everything.',
    ),
  scopes: scopes
    .exactOptional()
    .describe(
      'The OAuth scopes that a token needs for this mount, besides those for every request. A token without them does not see the mount; a request for a resource in it is answered with the missing scopes.',
    ),
  cache: z
    .strictObject({
      ttl: duration.describe('How long clients may cache an answer: "60s", "5m", or milliseconds.'),
      scope: z
        .enum(['public', 'private'])
        .default('private')
        .describe(
          '"public": a cache may give the answer for one client to another. A mount with access rules is always "private".',
        ),
    })
    .exactOptional()
    .describe('How clients may cache answers of the mount. By default they may not.'),
  poll: interval
    .exactOptional()
    .describe(
      'Interval at which everything is listed and compared, to find changes in a source that sends no notifications. By default never.',
    ),
  limits: z
    .strictObject({
      timeout: duration
        .refine((ms) => ms >= 100, { error: refusal('This is too short.', 'It must be at least "100ms".') })
        .exactOptional()
        .describe('Time-out of one answer of the source. By default "30s".'),
      concurrent: count.exactOptional().describe('Maximum number of concurrent requests to the source. By default 32.'),
      waiting: count.exactOptional().describe('Maximum number of further requests that wait. By default 256.'),
      failures: count
        .exactOptional()
        .describe(
          'Number of failures in a row after which the circuit breaker opens: no request goes to the source for a pause. By default 5.',
        ),
      pause: duration
        .refine((ms) => ms >= 1, { error: refusal('This is too short.', 'It must be at least "1ms".') })
        .exactOptional()
        .describe(
          'The first pause of the circuit breaker. It doubles while the source does not answer, up to a minute. By default "1s".',
        ),
    })
    .exactOptional()
    .describe('Limits that protect the server from a source that hangs or fails.'),
}

/** The options that every mount has. */
export type MountOptions = z.output<z.Members<typeof mountShape>>
