import * as z from '../../schema/builder.ts'
import { duration, glob, interval, size, text } from '../../schema/fields.ts'
import {
  documentEffectRules,
  documentsShape,
  pathEffects,
  pathsEffects,
  programEffects,
  withoutEffects,
} from '../../schema/shapes.ts'
import { filesShape } from '../files/config.ts'
import { defineSourceSchema } from '../source.ts'

const gitShape = {
  repository: text.describe(
    'A working tree, a bare repository or a .git folder. A relative path starts at the configuration file; "~/" is the home folder.',
  ),
  refs: z
    .array(glob)
    .min(1)
    .optionalKey(
      'Serves only refs whose full names match one of these globs, and the objects that can be reached from them. By default HEAD, branches and tags.',
    ),
  alternates: z
    .array(text)
    .optionalKey('Folders outside the repository from which it may borrow objects. By default none.'),
  maxBytes: size.optionalKey('Maximum size of a file, a part or a text in one answer. By default "16MiB".'),
  maxCommits: z
    .int()
    .min(1)
    .max(1_000_000)
    .optionalKey('Maximum number of commits in a log, and in the search for the dates of files. By default 10000.'),
  timeout: duration.optionalKey('Time-out of a git process for one answer. By default "10s".'),
  git: text.optionalKey('The git program: an absolute path, or a name on PATH. By default "git".'),
  watch: filesShape.watch,
  reconcile: interval.optionalKey(
    'Interval at which refs and the working tree are compared with their last known state, to find changes that the system did not report. By default "30s".',
  ),
}

export const source = defineSourceSchema({
  about: 'The history of a repository.',
  shape: { ...gitShape, ...documentsShape },
  needs: { repository: 'folder' },
  // The installed git runs nothing of a repository (docs/security.md): starting it is no effect, but naming another program is.
  effects: {
    options: {
      ...documentEffectRules,
      repository: pathEffects,
      alternates: pathsEffects,
      git: programEffects,
      ...withoutEffects('refs maxBytes maxCommits timeout watch reconcile'),
    },
  },
})
