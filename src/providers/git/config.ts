import * as z from '../../schema/builder.ts'
import { documentEffects, documentsShape } from '../../schema/documents.ts'
import { path, paths, program } from '../../schema/effects.ts'
import { duration, glob, size, text } from '../../schema/fields.ts'
import { filesShape } from '../files/config.ts'
import { defineSource } from '../source.ts'

/** The options of a mount whose provider is `git`. */
export const gitShape = {
  repository: text.describe(
    'A working tree, a bare repository or a .git folder. A relative path starts at the configuration file; "~/" is the home folder.',
  ),
  refs: z
    .array(glob)
    .min(1)
    .exactOptional()
    .describe(
      'Only refs that one of these globs matches, by their full names, and what can be reached from them, are served. By default HEAD, branches and tags.',
    ),
  alternates: z
    .array(text)
    .exactOptional()
    .describe('Folders outside the repository that it may borrow objects from. By default none.'),
  maxBytes: size
    .exactOptional()
    .describe('The largest file, or part of one, that is read at once, and the longest text. By default "16MiB".'),
  maxCommits: z
    .int()
    .min(1)
    .max(1_000_000)
    .exactOptional()
    .describe(
      'How many commits a log has at most, and how far back the dates of files are looked for. By default 10000.',
    ),
  timeout: duration.exactOptional().describe('How long one git may take for an answer. By default "10s".'),
  git: text.exactOptional().describe('The git to run: an absolute path, or a name on PATH. By default "git".'),
  watch: filesShape.watch,
  reconcile: filesShape.reconcile,
}

export const source = defineSource({
  about: 'The history of a repository.',
  shape: { ...gitShape, ...documentsShape },
  needs: { repository: 'folder' },
  // The git that is installed runs nothing of a repository (docs/security.md), so only another program is an effect.
  effects: {
    options: {
      ...documentEffects,
      repository: path,
      alternates: paths,
      git: program,
      refs: 'none',
      maxBytes: 'none',
      maxCommits: 'none',
      timeout: 'none',
      watch: 'none',
      reconcile: 'none',
    },
  },
})
