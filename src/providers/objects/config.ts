import { documentEffects, documentsShape } from '../../schema/documents.ts'
import { duration, size, text } from '../../schema/fields.ts'
import { refusal } from '../../schema/refusals.ts'

const [least, most] = [1000, 3_600_000]

/** Keys common to all mounts of object storage. */
export const objectsShape = {
  bucket: text.describe('The bucket.'),
  prefix: text
    .exactOptional()
    .describe(
      'Only keys below this are served, without it in their paths, such as "tenant1/". A slash at the end makes no difference. By default all.',
    ),
  maxBytes: size
    .refine((bytes) => bytes >= 1 && bytes <= 256 * 2 ** 20, {
      error: refusal('This is more than can be read at once, or nothing.', 'It must be at most "256MiB".'),
    })
    .exactOptional()
    .describe(
      'The largest object, or part of one, that is read at once. Of a larger one, parts can be read. By default "16MiB", at most "256MiB".',
    ),
  links: duration
    .refine((ms) => ms >= least && ms <= most, {
      error: refusal('This is too short or too long.', 'It must be from "1s" to "1h".'),
    })
    .exactOptional()
    .describe(
      'How long a link to an object that is too large to be read at once is valid. Everyone who has the link can fetch that object, without authentication. By default no links are given.',
    ),
  timeout: duration
    .refine((ms) => ms >= 100, { error: refusal('This is too short.', 'It must be at least "100ms".') })
    .exactOptional()
    .describe('How long the store may take for one answer, with everything that is tried again. By default "30s".'),
  ...documentsShape,
}

/** Effects of the options common to all mounts of object storage. */
export const objectsEffects = {
  ...documentEffects,
  bucket: 'none',
  prefix: 'none',
  maxBytes: 'none',
  links: 'none',
  timeout: 'none',
  endpoint: 'none',
  insecure: 'none',
  anonymous: 'none',
} as const
