import * as z from '../../schema/builder.ts'
import { documentEffects, documentsShape } from '../../schema/documents.ts'
import { opens, path } from '../../schema/effects.ts'
import { glob, globs, interval, size, text } from '../../schema/fields.ts'
import { refusal } from '../../schema/refusals.ts'
import { defineSource } from '../source.ts'

const rule = z.strictObject({
  match: globs.describe(
    'The files that the rule is about. Where several rules match a file, the last one with a fact gives it.',
  ),
  title: text
    .exactOptional()
    .describe('Their title for people; "heading" takes the first Markdown heading of each file.'),
  description: text.exactOptional().describe('What they are, for people and models.'),
  mimeType: z
    .string()
    .regex(/^[\w.+-]+\/[\w.+-]+(?:\s*;.*)?$/, {
      error: refusal('This is not a MIME type.', 'Write one such as "text/markdown".'),
    })
    .exactOptional()
    .describe('Their MIME type, where the one told by name and content is not right.'),
  priority: z
    .number()
    .min(0)
    .max(1)
    .exactOptional()
    .describe('How important they are: from 0, optional, to 1, required.'),
  audience: z
    .array(z.enum(['user', 'assistant']))
    .min(1)
    .exactOptional()
    .describe('Whom they are for: people, models or both.'),
})

/** Maximum size of a file in an answer, in bytes: a longer text would exceed the length of a JavaScript string. */
const mostBytes = 256 * 2 ** 20

/** The options of a mount whose provider is `files`. */
export const filesShape = {
  root: text.describe('The folder. A relative path starts at the configuration file; "~/" is the home folder.'),
  include: z
    .array(glob)
    .min(1)
    .exactOptional()
    .describe('Only what one of these globs matches is served. By default everything.'),
  exclude: z.array(glob).exactOptional().describe('What one of these globs matches is not served.'),
  gitignore: z.boolean().exactOptional().describe('Leaves out what .gitignore files ignore. By default true.'),
  defaultExcludes: z
    .union(
      [z.boolean(), z.strictObject({ except: z.array(glob).describe('What matches one of these globs is served.') })],
      {
        error: refusal(
          'This does not say which files are left out by default.',
          'Write true, false or { "except": ["docs/credentials.json"] }.',
        ),
      },
    )
    .exactOptional()
    .describe(
      'Leaves out .git, dependency folders, caches, and files that commonly hold keys or passwords; "except" names those that are served all the same. By default true.',
    ),
  hidden: z
    .boolean()
    .exactOptional()
    .describe('Serves files and folders whose names begin with a dot. By default true.'),
  symlinks: z
    .enum(['deny', 'beneath'])
    .exactOptional()
    .describe(
      'Symbolic links: "beneath" follows those that stay within the folder, where the path that they lead to is served as well; "deny" leaves them out. By default "beneath".',
    ),
  hardlinks: z
    .boolean()
    .exactOptional()
    .describe('Serves files that have a second name, which may lie outside the folder. By default false.'),
  allowMounts: z
    .boolean()
    .exactOptional()
    .describe('Serves other file systems that are mounted in the folder. By default false.'),
  maxBytes: size
    .refine((bytes) => bytes <= mostBytes, {
      error: refusal('This is more than can be read at once.', 'It must be at most "256MiB".'),
    })
    .exactOptional()
    .describe(
      'The largest file, or part of one, that is read at once. Of a larger one, parts can be read. By default "16MiB", at most "256MiB".',
    ),
  watch: z.boolean().exactOptional().describe('Tells clients what changes. By default true.'),
  reconcile: interval
    .exactOptional()
    .describe('How often everything is compared, for changes that the system does not tell of. By default "30s".'),
  rules: z.array(rule).exactOptional().describe('What clients are told of files, by glob.'),
}

/** Effects of the options that let a folder serve what does not lie in it. Links of the kind "beneath" stay within the folder. */
export const folderEffects = {
  root: path,
  include: 'none',
  exclude: 'none',
  gitignore: 'none',
  hidden: 'none',
  symlinks: 'none',
  hardlinks: opens('files that have a second name elsewhere'),
  allowMounts: opens('other file systems that are mounted in the folder'),
  watch: 'none',
  reconcile: 'none',
} as const

export const source = defineSource({
  about: 'A folder of files.',
  shape: { ...filesShape, ...documentsShape },
  needs: { root: 'served folder' },
  effects: {
    options: { ...documentEffects, ...folderEffects, defaultExcludes: 'none', maxBytes: 'none', rules: 'none' },
  },
})
