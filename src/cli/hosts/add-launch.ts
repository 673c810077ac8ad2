import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { parse, relative, resolve } from 'node:path'
import { defaultConfig } from '../../config/default-file.ts'
import { checkFile, checkFolder } from '../../config/folder.ts'
import { defined } from '../../core/kit/defined.ts'
import { isPublished } from '../operations/version.ts'
import { loadFound, withheldNote } from '../operations/withheld.ts'
import { failed, misused } from '../terminal/exit.ts'
import { localLaunch, remoteLaunch } from './launch.ts'
import type { Launch } from './types.ts'

/** The options of `add` that say what a host is to start, or to ask. */
export interface LaunchWords {
  readonly config?: string
  readonly url?: string
  readonly header?: readonly string[]
  readonly tokenEnv?: string
  readonly tokenPrompt?: true
  readonly env?: readonly string[]
  readonly npx?: true
}

/** @throws CommandError for what is not there, what does not go together, and secrets. */
export async function launchFor(folders: readonly string[], options: LaunchWords): Promise<Launch> {
  const { url, header: headers = [], tokenEnv, tokenPrompt, config, npx, env = [] } = options
  if (url !== undefined) {
    if (folders.length > 0) throw misused('Give folders, or a --url: a server that runs has its own.')
    return remoteLaunch({
      url,
      headers,
      ...defined({ tokenVariable: tokenEnv }),
      ...(tokenPrompt === undefined ? {} : { asksToken: true }),
    })
  }
  for (const [given, name] of [
    [headers.length > 0, '--header'],
    [tokenEnv !== undefined, '--token-env'],
    [tokenPrompt, '--token-prompt'],
  ])
    if (given) throw misused(`${name} needs --url.`)
  if (npx && !isPublished())
    throw misused(
      'hikidashi is not in the registry of npm yet, so npx would not find it. Leave --npx out: the host then starts this installation.',
    )
  const served = await servedHere(folders, config)
  return localLaunch({ ...served, env, ...defined({ npx }) })
}

/** The host would start it with --config, as a configuration that the user named: it must be one that the user trusts. */
async function refuseUntrusted(file: string): Promise<void> {
  const { isTrusted } = await import('../../config/trust.ts')
  if (await isTrusted(file, await readFile(file))) return
  const loaded = await loadFound(file, false)
  if ('problems' in loaded) throw failed(`${file} has problems. To see them: hikidashi check`)
  const note = withheldNote(loaded.config)
  if (note !== undefined) throw failed(`${note}. Or name it: --config ${file}`)
}

/** Returns the arguments that `serve` would get here, with absolute paths: hosts start servers in folders of their own. */
async function servedHere(folders: readonly string[], config: string | undefined) {
  for (const folder of folders) {
    if (folder === '') throw misused('The name of a folder is empty.')
    const [finding] = await checkFolder(resolve(folder), [])
    if (finding !== undefined) throw failed(finding.message)
  }
  const assumed = config === undefined && folders.length === 0
  const file = config ?? (assumed && existsSync(defaultConfig) ? defaultConfig : undefined)
  if (file !== undefined) {
    const [finding] = await checkFile(resolve(file), [])
    if (finding !== undefined) throw failed(finding.message)
    if (config === undefined) await refuseUntrusted(file)
    return { folders, config: file }
  }
  if (!assumed) return { folders }
  const here = process.cwd()
  if (here === parse(here).root || relative(here, homedir()) === '')
    throw misused(
      `The current folder is ${here}, which is more than you want to serve. Name a folder, or give --config FILE.`,
    )
  return { folders: [here] }
}
