import * as z from './builder.ts'
import { access, count, duration, interval, link, scopes, text } from './fields.ts'
import { refusal } from './refusals.ts'

/** Keys common to the mounts of all providers. */
export const mountShape = {
  title: text.exactOptional().describe('The name of the mount for people.'),
  description: text.exactOptional().describe('What is in the mount, for people and models.'),
  link: link
    .exactOptional()
    .describe(
      'Where a person opens a resource of the mount: a URL of the web with {+path}, such as "https://forge.example/blob/main/{+path}". Of a history, {ref} is the branch and {+path} what follows: "https://forge.example/blob/{ref}/{+path}". By default nothing is said.',
    ),
  access: access
    .exactOptional()
    .describe(
      'Who may see what: names of roles that may see the whole mount, or rules. What no rule allows is denied; what any rule denies is denied; what is denied is as if it were not there. Without this key everybody sees everything.',
    ),
  scopes: scopes
    .exactOptional()
    .describe(
      'The OAuth scopes that a token needs for anything in the mount, besides those that every request needs. A token without them does not see the mount, and who asks for something in it is told which scopes that takes.',
    ),
  cache: z
    .strictObject({
      ttl: duration.describe('For how long clients may keep what they got: "60s", "5m", or milliseconds.'),
      scope: z
        .enum(['public', 'private'])
        .default('private')
        .describe(
          'Whether a cache may give what one client got to another. A mount with access rules is always private.',
        ),
    })
    .exactOptional()
    .describe('For how long clients may keep what they got from the mount. By default not at all.'),
  poll: interval
    .exactOptional()
    .describe(
      'How often everything is listed and compared, so that clients are told of changes in a source that cannot tell of them by itself. By default never.',
    ),
  limits: z
    .strictObject({
      timeout: duration
        .refine((ms) => ms >= 100, { error: refusal('This is too short.', 'It must be at least "100ms".') })
        .exactOptional()
        .describe('How long the source may take for one answer. By default "30s".'),
      concurrent: count.exactOptional().describe('How many requests may be at the source at once. By default 32.'),
      waiting: count.exactOptional().describe('How many more may wait for that. By default 256.'),
      failures: count
        .exactOptional()
        .describe('After how many failures in a row the source is left alone for a while. By default 5.'),
      pause: duration
        .refine((ms) => ms >= 1, { error: refusal('This is too short.', 'It must be at least "1ms".') })
        .exactOptional()
        .describe('For how long at first; it doubles while the source stays away, up to a minute. By default "1s".'),
    })
    .exactOptional()
    .describe('What keeps a source that hangs or fails from taking everything else with it.'),
}

/** The options that every mount has. */
export type MountOptions = z.output<z.Members<typeof mountShape>>
