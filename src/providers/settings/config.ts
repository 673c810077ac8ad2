import * as z from '../../schema/builder.ts'
import { duration, glob, sizeUpTo } from '../../schema/fields.ts'
import { encodingShape, withoutEffects } from '../../schema/shapes.ts'
import { filesShape, folderEffects } from '../files/config.ts'
import { defineSourceSchema } from '../source.ts'
import { settingsFormats } from './formats.ts'

const { root, include, exclude, worktrees, hidden, symlinks, hardlinks, allowMounts, watch, reconcile } = filesShape

const settingsShape = {
  root,
  include,
  exclude,
  gitignore: z.boolean().optionalKey('Leaves out files that git ignores, except dotenv files. By default true.'),
  dotenv: z
    .boolean()
    .optionalKey('Serves dotenv files (.env, .env.local, prod.env), even if git ignores them. By default true.'),
  ...{ worktrees, hidden, symlinks, hardlinks, allowMounts },
  formats: z
    .record(glob, z.enum(settingsFormats))
    .optionalKey('The formats of files whose names do not show the format, by glob. The last match applies.'),
  show: z
    .enum(['safe', 'allowed'])
    .optionalKey(
      'Which values are shown: "safe", all except those whose name or value looks secret; "allowed", only those that `allow` names. Dotenv files are always "allowed". By default "safe".',
    ),
  allow: z
    .array(glob)
    .optionalKey(
      'Values that are shown: pointers such as "/db/*", or names at any depth such as "*_HOST". A name that sounds secret needs an entry without a wildcard.',
    ),
  // The parser runs in a worker with limited memory.
  maxBytes: sizeUpTo('8MiB').optionalKey('Maximum size of a file. By default "1MiB", at most "8MiB".'),
  maxDepth: z.int().min(1).max(500).optionalKey('Maximum nesting of tables and lists. By default 64, at most 500.'),
  maxNodes: z
    .int()
    .min(1)
    .optionalKey('Maximum number of values in a file; a value that an alias repeats counts again. By default 100000.'),
  timeout: duration.optionalKey('Time-out for reading one file. By default "5s".'),
  ...encodingShape,
  watch,
  reconcile,
}

export const source = defineSourceSchema({
  about: 'Configuration files, without their secrets.',
  shape: settingsShape,
  needs: { root: 'served folder' },
  effects: {
    options: {
      ...folderEffects,
      ...withoutEffects('dotenv formats show allow maxBytes maxDepth maxNodes timeout language encodings'),
    },
  },
})
