import { addressBlock, isHttpUrl } from '../core/http-url.ts'
import * as z from './builder.ts'
import { duration, size, text } from './fields.ts'
import { refusal } from './refusals.ts'

export const httpUrl = text.refine(isHttpUrl, {
  error: refusal(
    'This is not an address of the web.',
    'Write one such as "https://www.example.org/docs", without a name and password, a query or a fragment.',
  ),
})

export const allowAddresses = z
  .array(
    text.refine((block) => addressBlock(block) !== undefined, {
      error: refusal(
        'This is not an address.',
        'Write one such as "10.0.0.5", or a block such as "10.0.0.0/8" or "fd00::/8".',
      ),
    }),
  )
  .exactOptional()
  .describe(
    'Addresses that may be reached although they are not on the internet: of this machine ("127.0.0.1"), of a private network ("10.0.0.0/8"). By default none.',
  )

/** Keys for access to a web server, shared by all providers that have one. */
export const originShape = {
  redirects: z
    .array(httpUrl)
    .exactOptional()
    .describe(
      'Other origins that redirects may lead to, such as "https://www.example.org". They get no credentials. By default none.',
    ),
  allowAddresses,
  insecure: z
    .boolean()
    .exactOptional()
    .describe(
      'Allows http:// to other machines. Anybody on the network path can then read and change the contents. By default false.',
    ),
  types: z
    .array(
      text.regex(/^[\w!#$&^.+*-]+\/[\w!#$&^.+*-]+$/, {
        error: refusal('This is not a media type.', 'Write one such as "text/html", or a glob such as "text/*".'),
      }),
    )
    .min(1)
    .exactOptional(),
  maxBytes: size
    .refine((bytes) => bytes >= 1 && bytes <= 64 * 2 ** 20, {
      error: refusal('This is more than can be read at once, or nothing.', 'It must be at most "64MiB".'),
    })
    .exactOptional()
    .describe('Maximum size of an answer, decompressed. By default "8MiB", at most "64MiB".'),
  timeout: duration
    .refine((ms) => ms >= 100 && ms <= 600_000, {
      error: refusal('This is too short or too long.', 'It must be from "100ms" to "10m".'),
    })
    .exactOptional()
    .describe('Time-out of one answer, with all redirects and the whole body. By default "20s".'),
}

/** None of these keys has an effect (`schema/effects.ts`) besides that of the access itself. */
export const originEffects = {
  redirects: 'none',
  allowAddresses: 'none',
  insecure: 'none',
  types: 'none',
  maxBytes: 'none',
  timeout: 'none',
} as const
