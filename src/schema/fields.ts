import { isResourceError, valueOr } from '../core/errors.ts'
import { compileGlob } from '../core/glob.ts'
import { compileTemplate } from '../core/template.ts'
import * as z from './builder.ts'
import { refusal } from './refusals.ts'
import { parseDuration, parseListenAddress, parseSize } from './values.ts'

/** Schemas of the kinds of value in a configuration. The refusals name the fault and the fix. */

export const text = z.string().min(1)

export const count = z.int().min(1)

/** Source of a secret. A literal secret is refused, and the refusal does not repeat it. */
export const secret = z.union(
  [
    z.strictObject({ env: text.describe('The name of an environment variable.') }),
    z.strictObject({ file: text.describe('The path of a file, relative to the configuration file.') }),
  ],
  { error: ({ input }) => secretRefusal(input) },
)

export function secretRefusal(input: unknown): string {
  if (typeof input !== 'string')
    return refusal('This is not a reference to a secret.', 'Write { "env": "NAME" } or { "file": "path" }.')
  return refusal(
    'This is a literal secret.',
    'Put it into an environment variable or a file of its own, and write { "env": "NAME" } or { "file": "path" }. If this file was ever shared, replace the secret.',
  )
}

/** Parsed to milliseconds. */
export const duration = quantity(parseDuration, 'a duration', '"60s", "30m" or "1d", or a number of milliseconds')

/** The bounds are written as in a configuration: `durationFrom('100ms', '1h')`. */
export function durationFrom(least: string, most?: string) {
  const from = parseDuration(least) ?? 0
  const to = most === undefined ? Number.POSITIVE_INFINITY : (parseDuration(most) ?? 0)
  const fault =
    most === undefined
      ? refusal('The duration is too short.', `It must be at least "${least}".`)
      : refusal('The duration is too short or too long.', `It must be from "${least}" to "${most}".`)
  return duration.refine((ms) => ms >= from && ms <= to, { error: fault })
}

/** From 100 ms to a day, parsed to milliseconds. */
export const interval = durationFrom('100ms', '1d')

/** Parsed to bytes. */
export const size = quantity(parseSize, 'a size', '"64KiB" or "16MiB", or a number of bytes')

/** The limit is written as in a configuration: `sizeUpTo('16MiB')`. */
export function sizeUpTo(most: string, fault = 'The size is larger than can be read at once.') {
  const limit = parseSize(most) ?? 0
  return size.refine((bytes) => bytes <= limit, { error: refusal(fault, `It must be at most "${most}".`) })
}

export const listenAddress = parsedWith(
  parseListenAddress,
  'This is not an address to listen on.',
  'Write a port, such as 8787, or a host and a port, such as "127.0.0.1:8787" or "[::1]:8787".',
)

function quantity(parse: (value: string | number) => number | undefined, what: string, examples: string) {
  return parsedWith(parse, `This is not ${what}.`, `Write ${examples}.`)
}

function parsedWith<T>(parse: (value: string | number) => T | undefined, fault: string, remedy: string) {
  const message = refusal(fault, remedy)
  return z.union([z.string(), z.number()], { error: message }).transform((value, context) => {
    const parsed = parse(value)
    if (parsed !== undefined) return parsed
    context.addIssue({ code: 'custom', message: message })
    return z.NEVER
  })
}

export const glob = text.superRefine((pattern, context) => {
  try {
    compileGlob(pattern)
  } catch (error) {
    if (!isResourceError(error)) throw error
    context.addIssue({
      code: 'custom',
      message: refusal(error.message, 'Correct it; a "\\\\" makes the next character literal.'),
    })
  }
})

export const globs = z.union([glob, z.array(glob).min(1)], {
  error: refusal('This is not a glob.', 'Write one, such as "src/**/*.ts", or an array of them.'),
})

const role = text.describe('The name of a role; "*" stands for everybody.')

const accessRule = z
  .strictObject({
    allow: z.array(role).min(1).optionalKey('The roles that may see the paths of `match`.'),
    deny: z
      .array(role)
      .min(1)
      .optionalKey('The roles that may not see the paths of `match`. A denial overrides every permission.'),
    match: globs.optionalKey('Globs of the paths of the rule. By default all paths.'),
  })
  .refine(({ allow, deny }) => allow !== undefined || deny !== undefined, {
    error: refusal('The rule neither allows nor denies anything.', 'Add "allow" or "deny" with names of roles.'),
  })

/** Parsing replaces the name of a role by a rule that allows the role all paths. */
export const access = z
  .array(
    z.union([role, accessRule], {
      error: refusal(
        'This is not an access rule.',
        'Write the name of a role, or { "allow": ["role"], "match": "docs/**" }.',
      ),
    }),
  )
  .min(1, {
    error: refusal(
      'The list is empty.',
      'Name the roles that may see the mount, or remove the key to let everybody see it.',
    ),
  })
  .transform((rules) => rules.map((rule) => (typeof rule === 'string' ? { allow: [rule] } : rule)))

/** The name of an OAuth scope (RFC 6749, section 3.3), except `offline_access`. */
export const scope = text
  .regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, {
    error: refusal(
      'This is not the name of a scope.',
      'Write one without spaces, quotes and backslashes, such as "files:read".',
    ),
  })
  .refine((name) => name !== 'offline_access', {
    error: refusal('This scope asks for refresh tokens, so a resource cannot require it.', 'Remove it.'),
  })

export const scopes = z.array(scope.describe('The name of a scope.')).min(1)

/** A URI template (RFC 6570) of web pages whose host is written out, with the variables `path` and `ref`. */
const link = text.superRefine((template, context) => {
  const isFault = !/^https?:\/\/[^\s@/{}?#\\]+\/\S*$/.test(template) || !isLinkTemplate(template)
  if (!isFault) return
  context.addIssue({
    code: 'custom',
    message: refusal(
      'This is not a URL template for links.',
      'Write a URL with {+path} in it, such as "https://forge.example/blob/main/{+path}".',
    ),
  })
})

function isLinkTemplate(text: string): boolean {
  const variables: readonly string[] = valueOr(() => compileTemplate(text).variables, [])
  return variables.includes('path') && variables.every((name) => name === 'path' || name === 'ref')
}

export const mountShape = {
  title: text.optionalKey('The name of the mount for people.'),
  description: text.optionalKey('A description of the mount, for people and models.'),
  link: link.optionalKey(
    'The web page of a resource, for people: a URL with {+path}, such as "https://forge.example/blob/main/{+path}". In a git mount {ref} is the branch and {+path} the rest: "https://forge.example/blob/{ref}/{+path}". By default there is no link.',
  ),
  access: access.optionalKey(
    'Access rules: names of roles that may see the whole mount, or objects with paths. A path is denied if no rule allows it, or if any rule denies it. Denied and missing look the same to the caller. Without this key every caller sees everything.',
  ),
  scopes: scopes.optionalKey(
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
    .optionalKey('How clients may cache answers of the mount. By default they may not.'),
  poll: interval.optionalKey(
    'Interval at which everything is listed and compared, to find changes in a source that sends no notifications. By default never.',
  ),
  limits: z
    .strictObject({
      timeout: durationFrom('100ms').optionalKey('Time-out of one answer of the source. By default "30s".'),
      concurrent: count.optionalKey('Maximum number of concurrent requests to the source. By default 32.'),
      waiting: count.optionalKey('Maximum number of further requests that wait. By default 256.'),
      failures: count.optionalKey(
        'Number of failures in a row after which the circuit breaker opens: no request goes to the source for a pause. By default 5.',
      ),
      pause: durationFrom('1ms').optionalKey(
        'The first pause of the circuit breaker. It doubles while the source does not answer, up to a minute. By default "1s".',
      ),
    })
    .optionalKey('Limits that protect the server from a source that hangs or fails.'),
}

export type MountOptions = z.output<z.Members<typeof mountShape>>
