import * as z from '../../schema/builder.ts'
import { glob, globs, interval, sizeUpTo, text } from '../../schema/fields.ts'
import { refusal } from '../../schema/refusals.ts'
import { documentEffectRules, documentsShape, effectIfOn, pathEffects, withoutEffects } from '../../schema/shapes.ts'
import { defineSourceSchema } from '../source.ts'

const rule = z.strictObject({
  match: globs.describe(
    'Globs of the files of the rule. If several rules match a file, each value comes from the last rule that has it.',
  ),
  title: text.optionalKey(
    'The title of the files for people; "heading" takes the first Markdown heading of each file.',
  ),
  description: text.optionalKey('A description of the files, for people and models.'),
  mimeType: z
    .string()
    .regex(/^[\w.+-]+\/[\w.+-]+(?:\s*;.*)?$/, {
      error: refusal('This is not a MIME type.', 'Write one such as "text/markdown".'),
    })
    .optionalKey('The MIME type of the files, if the detected one is wrong.'),
  priority: z.number().min(0).max(1).optionalKey('The importance of the files: from 0, optional, to 1, required.'),
  audience: z
    .array(z.enum(['user', 'assistant']))
    .min(1)
    .optionalKey('The audience of the files: people, models or both.'),
})

export const filesShape = {
  root: text.describe(
    'The folder to serve. A relative path starts at the configuration file; "~/" is the home folder.',
  ),
  include: z.array(glob).min(1).optionalKey('Serves only paths that match one of these globs. By default everything.'),
  exclude: z.array(glob).optionalKey('Leaves out paths that match one of these globs.'),
  gitignore: z.boolean().optionalKey('Leaves out files that git ignores. By default true.'),
  worktrees: z
    .boolean()
    .optionalKey('Serves other working trees of the same repository ("git worktree add"). By default false.'),
  defaultExcludes: z
    .union(
      [
        z.boolean(),
        z.strictObject({ except: z.array(glob).describe('Globs of the paths that are served nevertheless.') }),
      ],
      {
        error: refusal(
          'This is not a setting for the files that are left out by default.',
          'Write true, false or { "except": ["docs/credentials.json"] }.',
        ),
      },
    )
    .optionalKey(
      'Leaves out .git, dependency folders, caches, and files that commonly contain keys or passwords; "except" names exceptions, which are served. By default true.',
    ),
  hidden: z.boolean().optionalKey('Serves files and folders whose names begin with a dot. By default true.'),
  symlinks: z
    .enum(['deny', 'beneath'])
    .optionalKey(
      'Symbolic links: "beneath" follows a link if its target is a served path within the folder; "deny" leaves links out. By default "beneath".',
    ),
  hardlinks: z
    .boolean()
    .optionalKey(
      'Serves files with several hard links, of which one may lie outside the folder. Rules judge names: a file that "access", "exclude" or .gitignore hides under one name is served under its other names. By default false.',
    ),
  allowMounts: z.boolean().optionalKey('Serves file systems that are mounted inside the folder. By default false.'),
  // A longer content may exceed the maximum length of a JavaScript string in JSON or base64.
  maxBytes: sizeUpTo('256MiB').optionalKey(
    'Maximum size of a file, or of a part, in one answer. A larger file can be read in parts. By default "16MiB", at most "256MiB".',
  ),
  watch: z.boolean().optionalKey('Tells clients what changes. By default true.'),
  reconcile: interval.optionalKey(
    'Interval at which all files are compared with their last known state, to find changes that the system did not report. By default "30s".',
  ),
  rules: z.array(rule).optionalKey('Metadata of files, by glob.'),
}

/** Security effects of the options of a folder. `symlinks` has none, because "beneath" refuses targets outside of it. */
export const folderEffects = {
  root: pathEffects,
  hardlinks: effectIfOn('files that have a second name (a hard link) outside the folder'),
  allowMounts: effectIfOn('other file systems that are mounted in the folder'),
  ...withoutEffects('include exclude gitignore worktrees hidden symlinks watch reconcile'),
} as const

export const source = defineSourceSchema({
  about: 'A folder of files.',
  shape: { ...filesShape, ...documentsShape },
  needs: { root: 'served folder' },
  effects: {
    options: { ...documentEffectRules, ...folderEffects, defaultExcludes: 'none', maxBytes: 'none', rules: 'none' },
  },
})
