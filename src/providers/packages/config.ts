import * as z from '../../schema/builder.ts'
import { glob, text } from '../../schema/fields.ts'
import { documentEffectRules, documentsShape, pathEffects } from '../../schema/shapes.ts'
import { resolveConfigPath } from '../../schema/values.ts'
import { defineSourceSchema, type OpenSource } from '../source.ts'

const packagesShape = {
  root: text.describe(
    'The folder with the lock file and node_modules. A relative path starts at the configuration file.',
  ),
  packages: z
    .array(glob)
    .min(1)
    .optionalKey('The packages that are served, by globs of their names such as "@types/*". By default all.'),
}

export const source = defineSourceSchema({
  about: 'Documentation and types of the packages in a lock file, at the versions that are installed.',
  shape: { ...packagesShape, ...documentsShape },
  needs: { root: 'served folder' },
  effects: {
    // pnpm installs packages as hard links to its store in the home folder.
    always: () => [
      { kind: 'reads', what: 'files of packages that have a second name (a hard link) outside the folder' },
    ],
    options: { ...documentEffectRules, root: pathEffects, packages: 'none' },
  },
})

export const open: OpenSource<typeof source> = async (options, { folder, documents }) => {
  const { packages } = await import('./index.ts')
  return documents(await packages({ ...options, root: resolveConfigPath(options.root, folder) }))
}
