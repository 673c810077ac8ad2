#!/usr/bin/env node
import { existsSync, mkdirSync } from 'node:fs'
import nodeModule from 'node:module'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

/** Node from 22.8 on has this; the types are those of the oldest Node that is supported. */
const { enableCompileCache } = nodeModule as { readonly enableCompileCache?: (folder: string) => unknown }

/**
 * The folder where Node keeps what it compiled: that of NODE_COMPILE_CACHE, else one of the user's own (XDG Base Directory
 * Specification). Node's default lies in the temporary folder, where another user could have put something.
 */
const { NODE_COMPILE_CACHE: named, XDG_CACHE_HOME: cacheHome } = process.env
const folder = named || join(cacheHome || join(homedir(), '.cache'), 'hikidashi', 'compiled')

/**
 * Makes the folders of the cache that are missing, at most three. It does not make them with `recursive`: Node 22.23 never returns
 * from that where /proc is named. Answers whether the folder is there.
 */
function makeFolder(): boolean {
  const missing = [folder, dirname(folder), dirname(dirname(folder))].filter((path) => !existsSync(path)).reverse()
  try {
    for (const path of missing) mkdirSync(path, { mode: 0o700 })
    return true
  } catch {
    return false
  }
}

// It obeys NODE_DISABLE_COMPILE_CACHE. Without a folder, the start is as it was before Node had a cache.
if (enableCompileCache !== undefined && makeFolder()) enableCompileCache(folder)

// After the cache is enabled: a static import would be compiled before.
const { runProcess } = await import('./run.ts')
await runProcess()
