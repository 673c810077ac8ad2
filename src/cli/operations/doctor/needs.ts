import { statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { isAbsolute, resolve } from 'node:path'
import { mountSource, type PlannedMount } from '../../../config/plan.ts'
import type { PathStep } from '../../../config/problem.ts'
import { failedResult, okResult, warningResult } from '../../../core/kit/diagnosis.ts'
import { isObject } from '../../../core/kit/object.ts'
import { findProgram, isProgram, programFiles } from '../../../providers/program.ts'
import { findTesseract, missingLanguages, tesseractPackages } from '../../../providers/tesseract.ts'
import { resolveConfigPath, resolveSecret, secretSourcesIn } from '../../../schema/values.ts'
import { formatUtcTime, pluralize } from '../../terminal/io.ts'
import { packageVersion } from '../command-line.ts'
import { ownPackage } from '../publish/manifest.ts'
import type { CheckReporter } from './findings.ts'
import type { CheckContext } from './mounts.ts'

interface MachineFacts {
  readonly version?: string
  readonly now?: number
  readonly platform?: NodeJS.Platform
}

const testedVersions = '20.19, 22, 24 and 26'

export async function checkMachine(
  { tell }: CheckReporter,
  { version = process.versions.node, now = Date.now(), platform = process.platform }: MachineFacts = {},
): Promise<void> {
  const nodeRange = ownPackage().engines.node
  const finding = `Node ${version}, hikidashi ${packageVersion()}, ${platform} ${process.arch}`
  const fix = 'Install Node from https://nodejs.org, or: nvm install 24'
  const { bun, deno } = process.versions
  const other = deno === undefined ? bun && `Bun ${bun}` : `Deno ${deno}`
  if (!isWithin(version, nodeRange)) tell('node', failedResult(`${finding}: hikidashi needs Node ${nodeRange}.`, fix))
  else if (other === undefined) tell('node', okResult(`${finding} (tested with Node ${testedVersions})`))
  else tell('node', warningResult(`${finding}, in ${other}: some features work only in Node (docs/platforms.md).`, fix))
  if (platform === 'win32') {
    const weaker =
      'On Windows hikidashi does not limit the memory of the programs that it starts, and does not check who may read files with secrets.'
    tell('system', warningResult(weaker, 'Serve only folders and databases that you trust (docs/security.md).'))
  }
  const installed = statSync(new URL('../../../../package.json', import.meta.url)).mtimeMs
  // File systems of other machines, and a wrong daylight saving time, may differ by one hour.
  if (now > installed - 3_600_000) return tell('clock', okResult(formatUtcTime(now)))
  const late = `The clock of this machine is wrong: it shows ${formatUtcTime(now)}, before hikidashi was installed. Tokens and certificates will be refused.`
  const set = process.platform === 'linux' ? 'sudo timedatectl set-ntp true' : 'Set the clock of this machine.'
  tell('clock', failedResult(late, set))
}

function isWithin(version: string, range: string): boolean {
  return range.split(' || ').some((part) => {
    const [, sign, least = ''] = /^(\^|>=)(.*)$/.exec(part) ?? []
    const isMajor = sign !== '^' || version.split('.')[0] === least.split('.')[0]
    return isMajor && version.localeCompare(least, 'en', { numeric: true }) >= 0
  })
}

/** Resolves to the addresses of mounts that lack a secret. */
export async function checkSecrets(
  { local: { config }, positionOf }: CheckContext,
  { tell, doing }: CheckReporter,
): Promise<readonly string[]> {
  if (config === undefined) return []
  const lacking: string[] = []
  doing('Looking for the secrets')
  let there = 0
  let isFine = true
  for (const { path, source } of secretsIn(config.mounts, ['mounts'])) {
    const secret = await resolveSecret(source, { folder: config.folder })
    if ('value' in secret) there++
    else {
      isFine = false
      lacking.push(String(path[1]))
      const isWindows = process.platform === 'win32'
      const set = 'env' in source ? (isWindows ? `set ${source.env}=…` : `export ${source.env}=…`) : undefined
      const fix = set === undefined ? secret.fix : `${set}, then run this again.`
      tell('secrets', failedResult(`${positionOf(path)}: ${secret.message}`, fix))
    }
    const file = 'file' in source ? resolve(config.folder, source.file) : undefined
    if (file === undefined || !(await isReadByOthers(file))) continue
    isFine = false
    tell('secrets', warningResult(`Other users have rights to ${file}.`, `chmod 600 ${file}`))
  }
  if (isFine && there > 0) tell('secrets', okResult(`${pluralize(there, 'secret')} found`))
  return lacking
}

interface NamedSecret {
  readonly path: readonly PathStep[]
  readonly source: { readonly env: string } | { readonly file: string }
}

function secretsIn(value: unknown, path: readonly PathStep[]): readonly NamedSecret[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => {
    const here = [...path, Array.isArray(value) ? Number(key) : key]
    const [source] = secretSourcesIn(inner)
    const isSource = source !== undefined && source === inner
    return isSource ? [{ path: here, source }] : secretsIn(inner, here)
  })
}

async function isReadByOthers(file: string): Promise<boolean> {
  if (process.platform === 'win32') return false
  const mode = await stat(file).then(
    (stats) => stats.mode,
    () => 0,
  )
  return (mode & 0o077) !== 0
}

/** Resolves to the addresses of mounts that lack a program. */
export async function checkPrograms(
  { mounts, positionOf }: CheckContext,
  { tell }: CheckReporter,
): Promise<readonly string[]> {
  const lacking: string[] = []
  const programPaths = new Set<string>()
  for (const mount of mounts) {
    const programs = programsFor(mount)
    if (programs === undefined) continue
    const paths = await Promise.all(programs.names.map((name) => locateProgram(name, mount.folder)))
    const path = paths.find((one) => one !== undefined)
    if (path !== undefined) programPaths.add(path)
    else {
      lacking.push(mount.address)
      const names = programs.names.join(' or ')
      const fix = `${programs.fix}\nOr write its absolute path: ${positionOf(['mounts', mount.address, programs.key])}`
      tell('programs', failedResult(`${mount.address} needs ${names}, which this process cannot find or run.`, fix))
    }
  }
  if (programPaths.size > 0) tell('programs', okResult([...programPaths].join(', ')))
  return lacking
}

export function reportMissingGit({ local: { withoutGit = [] } }: CheckContext, { tell }: CheckReporter): void {
  const fix = `Install it: ${installs[process.platform] ?? 'install'} git`
  for (const folder of withoutGit)
    tell(
      'programs',
      warningResult(`The git history of ${folder} is not served: git is not on the PATH of this process.`, fix),
    )
}

/** Without `tesseract` and its languages a mount opens, but its scans are not read. */
export async function checkOcr({ mounts, positionOf }: CheckContext, { tell, doing }: CheckReporter): Promise<void> {
  const asking = mounts.flatMap(({ address, config }) => {
    const languages = ocrLanguagesIn(config)
    return languages === undefined ? [] : [{ address, languages }]
  })
  if (asking.length === 0) return
  doing('Looking for tesseract')
  const installed = await findTesseract(new AbortController().signal)
  if (installed !== undefined) {
    const { program, languages } = installed
    tell('ocr', okResult(`${program}, with the languages ${languages.join(', ')}`))
  }
  for (const { address, languages } of asking) {
    const missing = installed === undefined ? languages : missingLanguages(installed, languages)
    if (missing.length === 0) continue
    const what =
      installed === undefined
        ? 'tesseract is not on the PATH of this process, or does not run'
        : `tesseract lacks the languages ${missing.join(', ')}`
    const packages = tesseractPackages(missing).slice(installed === undefined ? 0 : 1)
    const position = positionOf(['mounts', address, 'readings', 'ocr'])
    tell(
      'ocr',
      warningResult(
        `${address} reads scans by OCR, but ${what}: scans are not read.`,
        `Install it: ${installOf(packages)}\nOr correct ${position}`,
      ),
    )
  }
}

function ocrLanguagesIn(config: object): readonly string[] | undefined {
  const readings: unknown = 'readings' in config ? config.readings : undefined
  const ocr = isObject(readings) ? readings.ocr : undefined
  return isObject(ocr) && Array.isArray(ocr.languages) ? ocr.languages.map(String) : undefined
}

/** Debian has a package for each language. */
function installOf(packages: readonly string[]): string {
  if (process.platform === 'linux') return `sudo apt install ${packages.join(' ')}`
  return process.platform === 'darwin'
    ? 'brew install tesseract tesseract-lang'
    : 'winget install UB-Mannheim.TesseractOCR'
}

function programsFor({ config }: PlannedMount) {
  const { names, install, option } = mountSource(config).programs?.(config) ?? {}
  if (names === undefined || option === undefined) return undefined
  const system = installs[process.platform] ?? 'install'
  return {
    names,
    fix: install === undefined ? `Install ${names[0]}.` : `Install it: ${system} ${install}`,
    key: option,
  }
}

const installs: Readonly<Partial<Record<NodeJS.Platform, string>>> = {
  linux: 'sudo apt install',
  darwin: 'brew install',
  win32: 'winget install',
}

async function locateProgram(name: string, folder: string): Promise<string | undefined> {
  if (!/[\\/]/.test(name)) return findProgram(name)
  const path = isAbsolute(name) ? name : resolveConfigPath(name, folder)
  for (const file of programFiles(path)) if (await isProgram(file)) return file
  return undefined
}
