import { invalid, isResourceError, notFound, unavailable } from '../../core/errors.ts'
import { compileGlobs } from '../../core/glob.ts'
import { eventLoopYield } from '../../core/kit/event-loop-yield.ts'
import { requireKeys } from '../../core/kit/object.ts'
import { afterSubtree, comparePaths } from '../../core/path.ts'
import type { Context, Provider, Template } from '../../core/provider.ts'
import { files } from '../files/index.ts'
import { type LockedPackage, lockFiles, parseLockFile } from './lock-file.ts'

export interface PackagesOptions {
  /** The absolute path of the folder with the lock file and `node_modules`. */
  readonly root: string
  /** Globs of names of packages: only these are served. By default all packages of the lock file. */
  readonly packages?: readonly string[]
}

const maxLockBytes = 16 * 1024 * 1024
/** Documentation, types, and `package.json`, which contains the installed version. */
const patterns = ['*.{md,mdx,markdown}', '{README,CHANGELOG,CHANGES,HISTORY}*', '*.d.{ts,mts,cts}', 'package.json']

const template: Template = {
  template: '{+path}',
  name: 'Packages',
  title: 'A file of an installed package',
  description: 'Documentation, changelog and types of a dependency at its installed version: zod@4.6.7/README.md.',
}

/**
 * Provider of the documentation and types of the packages in a lock file, at exactly the installed versions: `zod@4.6.7/README.md`,
 * `@types/node@20.1.0/fs.d.ts`. A package that is not installed in that version is missing. Files are opened as the `files` provider opens
 * them, and no symbolic link is followed: packages of pnpm are read in its store in `node_modules`.
 *
 * @throws ResourceError `invalid` for a folder without a lock file, and for a malformed glob. Its methods throw `unavailable` for a
 * malformed lock file, and for one of more than 16 MiB or 50,000 packages.
 */
export async function packages(options: PackagesOptions): Promise<Provider> {
  requireKeys('packages({ root })', options, { root: 'a string' })
  const { root, packages: globs = ['**'] } = options
  const isServed = compileGlobs(globs)
  const plain = { root, gitignore: false, defaultExcludes: false, watch: false, symlinks: 'deny' } as const
  const names = Object.keys(lockFiles) as (keyof typeof lockFiles)[]
  const locks = await files({ ...plain, include: names.map((name) => `/${name}`), maxBytes: maxLockBytes })
  const own: Context = { principal: { id: 'packages', roles: [] }, signal: new AbortController().signal }
  const present = await Promise.all(names.map((name) => locks.stat?.(name, own).catch(() => undefined)))
  const lockFile = names.find((_, index) => present[index] !== undefined)
  if (lockFile === undefined) {
    await locks.close?.()
    throw invalid(
      `The folder ${JSON.stringify(root)} has none of ${names.join(', ')}. Name the folder that has the lock file.`,
      'configuration',
    )
  }
  const isPnpm = lockFiles[lockFile] === 'pnpm'
  const include = patterns.map((glob) => `/node_modules/**/${glob}`)
  // Packages of pnpm are hard links to its store in the home folder.
  const installed = await files({ ...plain, include, hardlinks: isPnpm })
  let cachedPackages:
    | { readonly version: string | undefined; readonly packages: ReadonlyMap<string, LockedPackage> }
    | undefined

  const current = async (): Promise<ReadonlyMap<string, LockedPackage>> => {
    try {
      const now = await locks.stat?.(lockFile, own)
      if (cachedPackages !== undefined && cachedPackages.version === now?.version) return cachedPackages.packages
      const [content] = await locks.read({ path: lockFile, params: new Map() }, own)
      const text = content !== undefined && 'text' in content ? content.text : ''
      const packages = await parseLockFile(lockFiles[lockFile], text, eventLoopYield.take)
      cachedPackages = {
        version: content?.version,
        packages: new Map([...packages].filter(([, { name }]) => isServed(name))),
      }
      return cachedPackages.packages
    } catch (error) {
      if (!isResourceError(error, 'not-found') && !isResourceError(error, 'too-large')) throw error
      throw unavailable(`The lock file is gone, or has more than ${maxLockBytes} bytes.`)
    }
  }

  const holds = async (folder: string, version: string, context: Context): Promise<boolean> => {
    try {
      const [content] = await installed.read({ path: `${folder}/package.json`, params: new Map() }, context)
      const manifest: unknown = content !== undefined && 'text' in content ? JSON.parse(content.text) : undefined
      return typeof manifest === 'object' && manifest !== null && 'version' in manifest && manifest.version === version
    } catch (error) {
      if (error instanceof SyntaxError || isResourceError(error)) return false
      throw error
    }
  }

  const locate = async (one: LockedPackage, context: Context): Promise<string | undefined> => {
    for (const folder of one.folders) if (await holds(folder, one.version, context)) return folder
    if (!isPnpm) return undefined
    // pnpm appends the peers of a package, or a hash of them, to the version in the name of the folder.
    const [prefix, begins] = ['node_modules/.pnpm/', `${one.name.replace('/', '+')}@${one.version}_`]
    for await (const { path } of installed.list({ prefix, after: `${prefix}${begins}`, shallow: true }, context)) {
      if (!path.startsWith(begins, prefix.length)) return undefined
      if (await holds(`${path}node_modules/${one.name}`, one.version, context)) return `${path}node_modules/${one.name}`
    }
    return undefined
  }

  /** @throws ResourceError `not-found` if no served package has the path. */
  const find = async (path: string, context: Context): Promise<string> => {
    const [, directory = '', rest = ''] = /^((?:@[^/]+\/)?[^/]+\/)(.+)$/s.exec(path) ?? []
    const one = (await current()).get(directory)
    const folder = one === undefined || isNested(rest) || path.endsWith('/') ? undefined : await locate(one, context)
    if (folder === undefined) throw notFound()
    return `${folder}/${rest}`
  }

  return {
    list: async function* ({ prefix = '', after, shallow = false }, context) {
      for (const one of (await current()).values()) {
        const isPast = after !== undefined && comparePaths(afterSubtree(one.path), after) <= 0
        if (isPast || !(one.path.startsWith(prefix) || prefix.startsWith(one.path))) continue
        const folder = await locate(one, context)
        context.signal.throwIfAborted()
        const inner = prefix.slice(one.path.length)
        if (folder === undefined || isNested(inner)) continue
        const resumed = after?.startsWith(one.path) ? { after: `${folder}/${after.slice(one.path.length)}` } : {}
        const query = { prefix: `${folder}/${inner}`, shallow: shallow && prefix.startsWith(one.path), ...resumed }
        for await (const entry of installed.list(query, context)) {
          const path = entry.path.slice(folder.length + 1)
          if (!isNested(path)) yield { ...entry, path: `${one.path}${path}` }
        }
      }
    },
    stat: async (path, context) => {
      const entry = await installed.stat?.(await find(path, context), context)
      if (entry === undefined) throw notFound()
      return { ...entry, path }
    },
    read: async (request, context) => installed.read({ ...request, path: await find(request.path, context) }, context),
    templates: async () => [template],
    close: async () => {
      await Promise.all([locks.close?.(), installed.close?.()])
    },
  }
}

/** Whether a path leads to a package inside another package, which has an address of its own. */
function isNested(path: string): boolean {
  return path.startsWith('node_modules/') || path.includes('/node_modules/')
}
