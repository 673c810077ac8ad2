import { invalid } from '../../core/errors.ts'
import { compileGlobs } from '../../core/glob.ts'
import { baseName } from '../../core/path.ts'
import { isCredentialFile } from '../../secrets/credential-files.ts'

/** The formats of settings. `json` may have comments and trailing commas; `yaml` may hold several documents. */
export const settingsFormats = ['json', 'yaml', 'toml', 'ini', 'dotenv', 'properties'] as const

export type SettingsFormat = (typeof settingsFormats)[number]

/** Formats by file name. The first match applies. */
const names: readonly (readonly [RegExp, SettingsFormat])[] = [
  [/^\.env(?:\..+)?$|\.env$|^\.(?:flask|dev|prod|test)env$|^\.dev\.vars$/, 'dotenv'],
  [/\.(?:jsonc?|webmanifest|code-workspace)$|^\.(?:babel|eslint|jshint|swc|lintstaged|stylelint)rc$/, 'json'],
  [/\.ya?ml$|^\.(?:clang-format|clang-tidy|prettierrc|yamllint)$/, 'yaml'],
  [/\.toml$|^pipfile$/, 'toml'],
  [/\.(?:ini|cfg|cnf|inf|desktop|service|socket|timer)$/, 'ini'],
  [/^\.(?:editorconfig|gitconfig|gitmodules|npmrc|pypirc|pylintrc|flake8|coveragerc)$/, 'ini'],
  [/\.properties$/, 'properties'],
]

/** Lock files are not settings: tools write them for themselves. */
const locks = /^(?:package-lock|npm-shrinkwrap)\.json$|^composer\.lock$|^pnpm-lock\.yaml$/

export type FormatOf = (path: string) => SettingsFormat | undefined

export interface FormatRules {
  /** Globs: serves only matching paths. By default all files whose names show a known format. */
  readonly include?: readonly string[]
  /** Formats by glob, for names that do not show the format. The last match applies. */
  readonly formats?: Readonly<Record<string, SettingsFormat>>
}

/** @throws ResourceError `invalid` for a malformed glob or an unknown format. */
export function compileFormatRules({ include, formats: own = {} }: FormatRules): FormatOf {
  const included = include === undefined ? () => true : compileGlobs(include)
  const rules = Object.entries(own).map(([pattern, format]) => {
    if (!settingsFormats.includes(format))
      throw invalid(
        `${JSON.stringify(format)} is not a format of settings. Write one of ${settingsFormats.join(', ')}.`,
        'configuration',
      )
    return { matches: compileGlobs([pattern]), format }
  })
  return (path) => {
    if (path === '' || path.endsWith('/') || !included(path)) return undefined
    const rule = rules.findLast(({ matches }) => matches(path))
    if (rule !== undefined) return rule.format
    const name = baseName(path).toLowerCase()
    const format = names.find(([pattern]) => pattern.test(name))?.[1]
    // A file that is nothing but secrets has no settings to show.
    return format === undefined || locks.test(name) || isCredentialFile(path) ? undefined : format
  }
}

export const formatMimeTypes: Readonly<Record<SettingsFormat, string>> = {
  json: 'application/json',
  yaml: 'application/yaml',
  toml: 'application/toml',
  ini: 'text/plain',
  dotenv: 'text/plain',
  properties: 'text/plain',
}
