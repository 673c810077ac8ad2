#!/usr/bin/env node
import { existsSync, mkdirSync } from 'node:fs'
import nodeModule from 'node:module'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

/** `enableCompileCache` exists from Node 22.8 on. The installed types, of the oldest supported Node, lack it. */
const { enableCompileCache } = nodeModule as { readonly enableCompileCache?: (folder: string) => unknown }

/**
 * The folder of Node's compile cache: NODE_COMPILE_CACHE, else a folder of the user (XDG Base Directory Specification). Node's
 * default is in the temporary folder, where another user could have put files.
 */
const { NODE_COMPILE_CACHE: named, XDG_CACHE_HOME: cacheHome } = process.env
const folder = named || join(cacheHome || join(homedir(), '.cache'), 'hikidashi', 'compiled')

/**
 * Creates the missing folders of the cache, at most three. It does not use `recursive`: on a path below /proc, Node 22.23 never
 * returns from that. Returns whether the folder exists.
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

// NODE_DISABLE_COMPILE_CACHE turns the cache off. Without a folder, there is no cache.
if (enableCompileCache !== undefined && makeFolder()) enableCompileCache(folder)

// A dynamic import, because a static one would be compiled before the cache is enabled.
const { runProcess } = await import('./run.ts')
await runProcess()
