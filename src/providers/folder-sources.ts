import { defined } from '../core/kit/object.ts'
import { resolveFolder } from '../schema/values.ts'
import { decoded } from '../wrap/decoded.ts'
import { sliced } from '../wrap/sliced.ts'
import type { source as envSource } from './env/config.ts'
import type { source as filesSource } from './files/config.ts'
import type { source as gitSource } from './git/config.ts'
import type { source as promptsSource } from './prompts/config.ts'
import { databaseOptions, rowOptions } from './relational/mount.ts'
import type { source as settingsSource } from './settings/config.ts'
import type { OpenSource } from './source.ts'
import type { source as sqliteSource } from './sqlite/config.ts'

// Opens the sources that a folder without a configuration has. They are apart from `config.ts`, so that no schema is loaded with them.

/** Opens a folder of files as documents. */
export const openFiles: OpenSource<typeof filesSource> = async (options, { folder, log, documents }) => {
  const { files } = await import('./files/index.ts')
  const { rules = [], defaultExcludes } = options
  const { except = [] } = typeof defaultExcludes === 'object' ? defaultExcludes : {}
  return documents(await files({ ...options, root: resolveFolder(options.root, folder), log }), {
    // In another encoding, the heading is only known after decoding.
    headings: rules.flatMap(({ title, match }) => (title === 'heading' ? [match].flat() : [])),
    except,
    findsTwins: true,
  })
}

/** Opens the history of a repository, whose files are documents. */
export const openGit: OpenSource<typeof gitSource> = async (given, { folder, log, documents }) => {
  const { git } = await import('./git/index.ts')
  const { timeout, alternates = [], ...options } = given
  return documents(
    await git({
      ...options,
      repository: resolveFolder(given.repository, folder),
      alternates: alternates.map((name) => resolveFolder(name, folder)),
      ...defined({ timeoutMs: timeout }),
      log,
    }),
  )
}

/** Opens the files of settings in a folder. */
export const openSettings: OpenSource<typeof settingsSource> = async (given, { folder, log, redaction }) => {
  const [{ files }, { settings }] = await Promise.all([import('./files/index.ts'), import('./settings/index.ts')])
  const { dotenv = true, formats, timeout, show, allow, maxBytes, maxDepth, maxNodes, ...options } = given
  const { language, encodings } = given
  const { key, scrubber } = await redaction()
  const opened = await files({ ...options, root: resolveFolder(given.root, folder), dotenv, log })
  return sliced(
    settings({
      source: decoded(opened, defined({ language, rules: encodings })),
      ...defined({ key, scrubber, formats, show, allow, maxBytes, maxDepth, maxNodes, deadlineMs: timeout }),
    }),
  )
}

/** Opens a database in a file. */
export const openSqlite: OpenSource<typeof sqliteSource> = async (given, { folder, log }) => {
  const options = { ...databaseOptions(given), ...rowOptions(given.rows) }
  const { sqlite } = await import('./sqlite/index.ts')
  return sliced(await sqlite({ file: resolveFolder(given.file, folder), ...options, log }))
}

/** Opens the environment of the process, or the variables of a dotenv file. */
export const openEnv: OpenSource<typeof envSource> = async ({ allow = [], file }, { folder, redaction }) => {
  const { env } = await import('./env/index.ts')
  const { key, scrubber } = await redaction()
  const path = file === undefined ? undefined : resolveFolder(file, folder)
  return env({ allow, ...defined({ key, scrubber, file: path }) })
}

/** Opens a folder of prompts. They are made of its documents, so they are redacted as these are. */
export const openPrompts: OpenSource<typeof promptsSource> = async (options, { folder, log, documents }) => {
  const [{ files }, { prompts }] = await Promise.all([import('./files/index.ts'), import('./prompts/index.ts')])
  const { limit, include = ['**/*.md'] } = options
  const opened = await files({ ...options, include, root: resolveFolder(options.root, folder), log })
  return prompts({ source: await documents(opened, { frontMatter: ['**/*.md'] }), log, ...defined({ limit }) })
}
