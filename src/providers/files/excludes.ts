import { baseName } from '../../core/path.ts'
import { namesCredentials } from '../../secrets/credential-files.ts'

/**
 * The files and folders that are left out unless `defaultExcludes` is false: the private files of version control and tools, everything that
 * can be installed or built again, and files that commonly hold credentials (`secrets/credential-files.ts`). Names that are often real content
 * (`build`, `dist`, `target`, `vendor`, `env`) are served; .gitignore decides about them.
 */

/** Files and directories by their full name. */
const names = new Set([
  // Version control.
  ...['.git', 'git~1', '.hg', '.svn', '.jj', '.sl', '.pijul', '.bzr', '_darcs', '.got', '.fslckout', '_fossil_'],
  // Dependencies and caches.
  ...['node_modules', 'bower_components', 'jspm_packages', '.pnpm-store', '.venv', 'venv', '__pycache__', '.cache'],
  ...['.pytest_cache', '.mypy_cache', '.ruff_cache', '.tox', '.nox', '.eggs', '.hypothesis', '.ipynb_checkpoints'],
  ...['.next', '.nuxt', '.svelte-kit', '.turbo', '.parcel-cache', '.angular', '.docusaurus', '.nyc_output', '.gradle'],
  ...['.terraform', '.serverless', '.dart_tool', '.stack-work', '.direnv'],
  // Files that desktops leave behind.
  ...['.ds_store', 'thumbs.db', '.spotlight-v100', '.fseventsd', '.trashes', '$recycle.bin', 'lost+found'],
])

/** Files and directories by their name and the name of their parent directory. */
const places = new Set(['.yarn/cache', '.yarn/unplugged'])

const patterns = new RegExp(
  [
    // Environment files, except examples, samples and templates.
    '^\\.(?:env|dev\\.vars)(?!.*\\.(example|sample|template)$)',
    '^(?!(example|sample|template)\\.).*\\.env$',
    // Backups and swap files of editors and office programs, and deleted files that are still open (NFS, FUSE).
    '~$|^\\.#|^#.*#$|\\.sw[n-p]$|^~\\$|^\\.~lock\\.|^\\._|^\\.nfs[0-9a-f]{8}|^\\.fuse_hidden',
  ].join('|'),
)

/** Whether a path that is left out by default holds credentials, judged by its name: a known name of keys, or an environment file. */
export function isSecretName(path: string): boolean {
  const name = foldName(baseName(path))
  return namesCredentials(foldPath(path, name)) || /^\.(?:env|dev\.vars)|\.env$/.test(name)
}

/** Whether a path is left out by default, in any letter case. A directory's path ends in `/`. */
export function isExcludedByDefault(path: string): boolean {
  const name = foldName(baseName(path))
  if (names.has(name) || patterns.test(name)) return true
  const folded = foldPath(path, name)
  if (namesCredentials(folded)) return true
  const body = folded.endsWith('/') ? folded.slice(0, -1) : folded
  return places.has(body.slice(body.lastIndexOf('/', body.length - name.length - 2) + 1))
}

/** Returns the last three segments of a path, folded by {@link foldName}. No name in the tables has more segments. */
function foldPath(path: string, name: string): string {
  const isFolder = path.endsWith('/')
  const above = (isFolder ? path.slice(0, -1) : path).split('/').slice(0, -1)
  const near = above.slice(-2).map(foldName)
  return [...(above.length > 2 ? [''] : []), ...near, name].join('/') + (isFolder ? '/' : '')
}

/** Whether a path is an environment file: `.env`, `.env.local`, `prod.env`, `.dev.vars`. False for the backups of editors. */
export function isDotenv(path: string): boolean {
  return /^\.(?:env|dev\.vars)(\..+)?$|\.env$/.test(baseName(path)) && !/\/$|~$|\.sw[n-p]$/.test(path)
}

/** Invisible characters, which some file systems ignore in a name (HFS+, case-folding ext4). */
const unseen = /\p{Default_Ignorable_Code_Point}/gu

/**
 * Returns one text for all spellings that some file system treats as the same name: `.GIT`, `.ſsh` (U+017F), `.git.` (NTFS, SMB), letters with
 * zero-width marks in between. It also maps different names to one text, so it serves only to decide what is left out.
 */
export function foldName(name: string): string {
  if (!/[^\x21-\x7e]|[A-Z]|\.$/.test(name)) return name
  const plain = name.normalize('NFKC').replace(unseen, '').toUpperCase().toLowerCase()
  return plain.replace(/(?<=[^. ])[. ]+$/, '')
}
