import * as z from '../../schema/builder.ts'
import { documentEffectRules, documentsShape } from '../../schema/shapes.ts'
import { filesShape, folderEffects } from '../files/config.ts'
import { defineSourceSchema } from '../source.ts'

const { root, include, exclude, gitignore, worktrees, hidden, symlinks, hardlinks, allowMounts, watch, reconcile } =
  filesShape

const promptsShape = {
  root,
  include: include.describe('Serves only paths that match one of these globs. By default "**/*.md".'),
  ...{ exclude, gitignore, worktrees, hidden, symlinks, hardlinks, allowMounts },
  limit: z
    .int()
    .min(1)
    .max(10_000)
    .optionalKey('Maximum number of prompts; further prompts are left out. By default 1000, at most 10000.'),
  watch,
  reconcile,
}

export const source = defineSourceSchema({
  about: 'A folder of prompts: Markdown files, which are offered as prompts too.',
  shape: { ...promptsShape, ...documentsShape },
  needs: { root: 'served folder' },
  effects: { options: { ...documentEffectRules, ...folderEffects, limit: 'none' } },
})
