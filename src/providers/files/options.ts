import { constants } from 'node:buffer'
import mime from 'mime'
import { invalid } from '../../core/errors.ts'
import { compileGlobs } from '../../core/glob.ts'
import { requireInteger } from '../../core/kit/object.ts'
import type { FolderBounds } from '../../core/kit/within.ts'
import type { Log } from '../../core/log.ts'
import type { Description } from '../../core/provider.ts'

/** Extensions and whole names of files, by their MIME types. The `mime` library decides about others. */
const types: Readonly<Record<string, readonly string[]>> = {
  'text/typescript': ['ts', 'mts', 'cts'],
  'text/tsx': ['tsx'],
  'text/javascript': ['js', 'mjs', 'cjs'],
  'text/x-rust': ['rs'],
  'text/x-python': ['py', 'pyi', 'pyw', 'bzl', 'SConstruct', 'BUILD', 'WORKSPACE'],
  'text/x-go': ['go', 'go.mod', 'go.sum'],
  'text/x-ruby': ['rb', 'rake', 'gemspec', 'ru', 'Gemfile', 'Rakefile', 'Podfile', 'Vagrantfile'],
  'text/x-java': ['java'],
  'text/x-kotlin': ['kt', 'kts'],
  'text/x-scala': ['scala', 'sc'],
  'text/x-groovy': ['groovy', 'gradle', 'Jenkinsfile'],
  'text/x-c': ['c', 'h'],
  'text/x-c++': ['cc', 'cpp', 'cxx', 'hh', 'hpp', 'hxx', 'ino'],
  'text/x-csharp': ['cs', 'csx'],
  'text/x-fsharp': ['fs', 'fsi', 'fsx'],
  'text/x-objective-c': ['m', 'mm'],
  'text/x-swift': ['swift'],
  'text/x-dart': ['dart'],
  'text/x-lua': ['lua'],
  'text/x-r': ['r'],
  'text/x-julia': ['jl'],
  'text/x-haskell': ['hs', 'lhs'],
  'text/x-ocaml': ['ml', 'mli'],
  'text/x-elixir': ['ex', 'exs'],
  'text/x-erlang': ['erl', 'hrl'],
  'text/x-clojure': ['clj', 'cljs', 'cljc', 'edn'],
  'text/x-elm': ['elm'],
  'text/x-zig': ['zig'],
  'text/x-nim': ['nim'],
  'text/x-crystal': ['cr'],
  'text/x-perl': ['pl', 'pm'],
  'text/x-php': ['php'],
  'text/x-lisp': ['lisp', 'el'],
  'text/x-scheme': ['scm', 'rkt'],
  'text/x-solidity': ['sol'],
  'text/x-nix': ['nix'],
  'text/x-terraform': ['tf', 'hcl'],
  'text/x-protobuf': ['proto'],
  'text/x-graphql': ['graphql', 'gql'],
  'text/x-prisma': ['prisma'],
  'text/x-shellscript': ['sh', 'bash', 'zsh', 'fish', 'ksh', '.bashrc', '.bash_profile', '.profile', '.zshrc'],
  'text/x-powershell': ['ps1', 'psm1', 'psd1'],
  'text/x-batch': ['bat', 'cmd'],
  'text/x-sql': ['sql'],
  'text/x-vue': ['vue'],
  'text/x-svelte': ['svelte'],
  'text/x-astro': ['astro'],
  'text/x-dockerfile': ['dockerfile', 'Dockerfile', 'Containerfile'],
  'text/x-makefile': ['mk', 'mak', 'Makefile', 'GNUmakefile', 'makefile'],
  'text/x-cmake': ['cmake', 'CMakeLists.txt'],
  'text/x-diff': ['diff', 'patch'],
  'text/x-tex': ['tex', 'sty', 'cls', 'bib'],
  'text/x-rst': ['rst'],
  'text/asciidoc': ['adoc', 'asciidoc'],
  'text/org': ['org'],
  'text/x-gettext-translation': ['po', 'pot'],
  'text/yaml': ['yaml', 'yml', '.clang-format'],
  'application/toml': ['toml', 'Cargo.lock', 'poetry.lock', 'uv.lock', 'Pipfile'],
  'application/json': [
    'json',
    'jsonc',
    'json5',
    'webmanifest',
    'code-workspace',
    '.babelrc',
    '.eslintrc',
    '.prettierrc',
  ],
  'application/x-ndjson': ['jsonl', 'ndjson'],
  'application/vnd.sqlite3': ['sqlite', 'sqlite3'],
  'application/vnd.apache.parquet': ['parquet'],
  'text/plain': [
    ...['properties', 'cfg', 'conf', 'ini', 'env', 'lock', 'lst', 'srt', 'LICENSE', 'LICENCE', 'COPYING', 'NOTICE'],
    ...['AUTHORS', 'CONTRIBUTORS', 'CHANGELOG', 'README', 'INSTALL', 'TODO', 'VERSION', 'CODEOWNERS', 'Procfile'],
    ...['.gitignore', '.gitattributes', '.gitmodules', '.gitkeep', '.dockerignore', '.npmignore', '.prettierignore'],
    ...['.eslintignore', '.editorconfig', '.mailmap', '.nvmrc', '.node-version', '.python-version', '.tool-versions'],
  ],
}

const typesByName = new Map(
  Object.entries(types).flatMap(([type, names]) => names.map((name) => [name, type] as const)),
)

const others = new Map<string, string | undefined>()

/** Returns the MIME type for a file name; undefined if none is known. */
export function mimeTypeByName(name: string): string | undefined {
  const whole = typesByName.get(name)
  if (whole !== undefined) return whole
  const dot = name.lastIndexOf('.')
  // A name like `.profile` has no extension.
  if (dot <= 0) return undefined
  const extension = name.slice(dot + 1).toLowerCase()
  if (!typesByName.has(extension) && !others.has(extension)) {
    if (others.size >= 1000) others.clear()
    others.set(extension, mime.getType(extension) ?? undefined)
  }
  const type = typesByName.get(extension) ?? others.get(extension)
  return type ?? (/^(?:Docker|Container)file\./.test(name) ? 'text/x-dockerfile' : undefined)
}

/** Returns the MIME type of a file: the type by its name, unless there is none or its content contradicts it. */
export function mimeTypeOfFile(name: string, content: { readonly text: boolean; readonly head: Uint8Array }): string {
  const byName = mimeTypeByName(name)
  if (byName === undefined) return magic(content.head) ?? (content.text ? 'text/plain' : 'application/octet-stream')
  // A type that is in neither `textTypes` nor `binaryTypes` fits any content.
  const isText = textTypes.test(byName)
  if (!content.text) return isText ? 'application/octet-stream' : byName
  return !isText && binaryTypes.test(byName) ? (magic(content.head) ?? 'text/plain') : byName
}

const textTypes =
  /^text\/|[+/](?:json|xml)$|^application\/(?:x-)?(?:toml|ndjson|yaml|javascript|sql|sh|tex|httpd-php|subrip)$/
const binaryTypes =
  /^(?:image|audio|video|font)\/|^application\/(?:octet-stream|zip|gzip|pdf|wasm|vnd\.|x-tar|java-archive)/

/** Magic numbers of types, in hexadecimal; a dot is any digit. */
const beginnings: readonly (readonly [RegExp, string])[] = [
  [/^89504e470d0a1a0a/, 'image/png'],
  [/^ffd8ff/, 'image/jpeg'],
  [/^47494638(?:37|39)61/, 'image/gif'],
  [/^52494646.{8}57454250/, 'image/webp'],
  [/^255044462d/, 'application/pdf'],
  [/^504b(?:0304|0506)/, 'application/zip'],
  [/^1f8b08/, 'application/gzip'],
]

function magic(head: Uint8Array): string | undefined {
  const digits = Buffer.from(head.subarray(0, 16)).toString('hex')
  return beginnings.find(([pattern]) => pattern.test(digits))?.[1]
}

/** Metadata for the files that match. When several rules match a file, the last rule that sets a field decides it. */
export interface FileRule extends Description {
  readonly match: string | readonly string[]
  /** `heading`: the first Markdown heading in the file. Any other text is the title itself. */
  readonly title?: 'heading' | (string & {})
}

export interface RuleFacts {
  readonly facts: Description
  readonly heading: boolean
}

export type MetadataRules = (path: string) => RuleFacts

/** The facts of a file in a mount without rules. */
export const noFacts: Description = {}

/**
 * Compiles rules; undefined if there are none.
 *
 * @throws ResourceError `invalid` for a malformed glob, or a priority that is not from 0 to 1.
 */
export function compileMetadataRules(rules: readonly FileRule[]): MetadataRules | undefined {
  if (rules.length === 0) return undefined
  const compiled = rules.map(({ match, ...facts }) => {
    if (facts.priority !== undefined && !(facts.priority >= 0 && facts.priority <= 1))
      throw invalid(`The priority of the rule for ${JSON.stringify(match)} must be from 0 to 1.`, 'configuration')
    return { matches: compileGlobs(typeof match === 'string' ? [match] : match), facts }
  })
  const combined = new Map<string, RuleFacts>()
  return (path) => {
    const matching = compiled.filter(({ matches }) => matches(path))
    const key = compiled.map((rule) => (matching.includes(rule) ? '1' : '0')).join('')
    const ruleFacts = combined.get(key)
    if (ruleFacts !== undefined) return ruleFacts
    const { title, ...facts } = Object.assign({}, ...matching.map((rule) => rule.facts)) as Description
    const heading = title === 'heading'
    const value = { facts: { ...facts, ...(title === undefined || heading ? {} : { title }) }, heading }
    combined.set(key, value)
    return value
  }
}

/** Whether files that are hardly ever worth serving are left out. */
export type DefaultExcludes =
  | boolean
  | {
      /** Globs of paths that are served nevertheless. A file in a folder that is left out also needs a glob for the folder. */
      readonly except: readonly string[]
    }

export interface FilesOptions {
  /** The absolute path of the directory to serve. */
  readonly root: string
  /** Limits of the path of the root. By default its symbolic links are followed, once, when the provider is created. */
  readonly within?: FolderBounds
  /** Globs: serves only paths that match one, or are in a matching directory. Default exclusions still apply to them. */
  readonly include?: readonly string[]
  /** Globs, in any letter case: leaves out paths that match, or are in a matching directory. */
  readonly exclude?: readonly string[]
  /**
   * Whether the ignore rules of git apply: `.gitignore` files, `info/exclude` and `core.excludesFile` of each repository. Those of `.ignore` and
   * `.hikidashiignore` always apply. Default true.
   */
  readonly gitignore?: boolean
  /** Whether other working trees (`git worktree add`) of a repository that is served are served too. Default false. */
  readonly worktrees?: boolean
  /** Whether version control, dependencies, caches, credentials, `.env` files and editor backups are left out. Default true. */
  readonly defaultExcludes?: DefaultExcludes
  /**
   * Whether dotenv files (`.env`, `.env.local`, `prod.env`) are served even if `defaultExcludes` and .gitignore files leave them out. For
   * wrappers that remove the secrets. Default false.
   */
  readonly dotenv?: boolean
  /** Whether names that begin with a dot are served. Default true. */
  readonly hidden?: boolean
  /**
   * `deny`: symbolic links are not served. `beneath`: a link is served as its target, if the target lies in the root and is served by its own
   * name. Default `beneath`.
   */
  readonly symlinks?: 'deny' | 'beneath'
  /** Whether files with several names (hard links) are served. Default false, because another name may be elsewhere. */
  readonly hardlinks?: boolean
  /** Whether other file systems mounted inside the root are served. Default false. */
  readonly allowMounts?: boolean
  /** Maximum size of a file, or of a range, that is read at once, in bytes. Default 16 MiB, at most 256 MiB. */
  readonly maxBytes?: number
  readonly rules?: readonly FileRule[]
  /**
   * Languages, as they are spelled in paths: `ja` for `docs/ja/a.md`. The `meta` of a read then names the same document in the other
   * languages. Do not set it if access rules hide some paths of the folder: their names would appear there. Default none.
   */
  readonly languages?: readonly string[]
  /** Whether changes are notified. Default true. */
  readonly watch?: boolean
  /**
   * Interval at which files are compared with their last known state, in milliseconds, to find changes that the system does not report. Default
   * 30,000, at least 100, at most a day.
   */
  readonly reconcile?: number
  readonly log?: Log
}

const defaultMaxBytes = 16 * 1024 * 1024
const mostBytes = Math.min(256 * 1024 * 1024, constants.MAX_STRING_LENGTH)

const defaultReconcileMs = 30_000
const maxReconcileMs = 24 * 3_600_000

/** Adds the default values. @throws ResourceError `invalid` for `maxBytes` or `reconcile` out of range. */
export function completeFilesOptions(options: FilesOptions) {
  const { maxBytes = defaultMaxBytes, reconcile = defaultReconcileMs } = options
  requireInteger('maxBytes', maxBytes, 1, mostBytes)
  if (!Number.isFinite(reconcile) || reconcile < 100 || reconcile > maxReconcileMs)
    throw invalid(`reconcile must be a number of milliseconds from 100 to ${maxReconcileMs}.`, 'configuration')
  return {
    gitignore: options.gitignore ?? true,
    worktrees: options.worktrees ?? false,
    defaultExcludes: options.defaultExcludes ?? true,
    dotenv: options.dotenv ?? false,
    hidden: options.hidden ?? true,
    symlinks: options.symlinks ?? 'beneath',
    hardlinks: options.hardlinks ?? false,
    allowMounts: options.allowMounts ?? false,
    rules: options.rules ?? [],
    languages: options.languages ?? [],
    log: options.log ?? (() => {}),
    maxBytes,
    watch: options.watch ?? true,
    reconcile,
  }
}
