#!/usr/bin/env node

// Old versions of Node must get as far as the check below, so this file has no static import and no syntax that they
// cannot parse.

async function start(): Promise<void> {
  enableCache()
  // A static import would be compiled before the cache is enabled.
  const words = process.argv.slice(2)
  if (words[0] === 'pack' && words.includes('--hook')) {
    const { answerHook, parseHookOptions } = await import('./hosts/answer-hook.ts')
    const options = parseHookOptions(words)
    if (options !== undefined) {
      await answerHook(options)
      process.exit()
    }
  }
  const isShared = words[0] === 'serve' && words.includes('--stdio')
  const sharing = isShared ? await (await import('./operations/joining/index.ts')).joinServer(words) : undefined
  if (sharing === 'served') process.exit()
  const { runAndExit } = await import('./run.ts')
  await runAndExit(sharing)
}

/** `enableCompileCache` exists from Node 22.8 on. */
function enableCache(): void {
  const { enableCompileCache } = process.getBuiltinModule('node:module') as {
    readonly enableCompileCache?: (folder: string) => unknown
  }
  const folder = cacheFolder()
  if (folder !== undefined && enableCompileCache !== undefined && makeFolder(folder)) enableCompileCache(folder)
}

/**
 * Returns the folder of Node's compile cache. Node's default is in the temporary folder, where another user could have
 * put files.
 */
function cacheFolder(): string | undefined {
  const {
    NODE_COMPILE_CACHE: cacheVariable,
    NODE_DISABLE_COMPILE_CACHE: isOff,
    XDG_CACHE_HOME: cacheHome,
  } = process.env
  if (isOff) return undefined
  const { isAbsolute, join } = process.getBuiltinModule('node:path')
  if (cacheVariable) return cacheVariable
  if (cacheHome && isAbsolute(cacheHome)) return join(cacheHome, 'hikidashi', 'compiled')
  try {
    const home = process.getBuiltinModule('node:os').homedir()
    return isAbsolute(home) ? join(home, '.cache', 'hikidashi', 'compiled') : undefined
  } catch {
    return undefined
  }
}

/**
 * Creates a folder and up to two missing parents, one by one: on a path below /proc, Node 22.23 never returns from a
 * recursive `mkdirSync`.
 */
function makeFolder(folder: string): boolean {
  const { existsSync, mkdirSync } = process.getBuiltinModule('node:fs')
  const { dirname } = process.getBuiltinModule('node:path')
  const missing = [folder, dirname(folder), dirname(dirname(folder))].filter((path) => !existsSync(path)).reverse()
  try {
    for (const path of missing) mkdirSync(path, { mode: 0o700 })
    return true
  } catch {
    return false
  }
}

// The same versions as `engines` of package.json. Node 21, and 22 before 22.3, have no `process.getBuiltinModule`.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major > 22 || (major === 22 && minor >= 3) || (major === 20 && minor >= 19)) void start()
else {
  const finding = `This is Node ${process.versions.node}: install a newer one from https://nodejs.org, or: nvm install 24`
  process.stderr.write(`hikidashi needs Node 20.19 or a later 20, or Node 22.3 or later. ${finding}\n`)
  process.exitCode = 1
}
