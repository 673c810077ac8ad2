import { baseName } from '../../core/path.ts'

/**
 * What is left out unless `defaultExcludes` is false: what version control and tools keep for themselves, what can be
 * installed or built again and is never anybody's content, and what commonly holds secrets. Names that are often real
 * content (`build`, `dist`, `target`, `vendor`, `env`) are served: .gitignore says what is not.
 */

/** Files and directories by their whole name. */
const names = new Set([
  // Version control.
  ...['.git', 'git~1', '.hg', '.svn', '.jj', '.bzr', '_darcs'],
  // Dependencies and caches.
  ...['node_modules', 'bower_components', 'jspm_packages', '.pnpm-store', '.venv', 'venv', '__pycache__', '.cache'],
  ...['.pytest_cache', '.mypy_cache', '.ruff_cache', '.tox', '.nox', '.eggs', '.hypothesis', '.ipynb_checkpoints'],
  ...['.next', '.nuxt', '.svelte-kit', '.turbo', '.parcel-cache', '.angular', '.docusaurus', '.nyc_output', '.gradle'],
  ...['.terraform', '.serverless', '.dart_tool', '.stack-work', '.direnv'],
  // Keys and credentials.
  ...['.aws', '.ssh', '.gnupg', '.kube', '.azure', '.password-store', '.netrc', '_netrc', '.npmrc', '.pypirc'],
  ...['.pgpass', 'pgpass.conf', '.my.cnf', '.mylogin.cnf', '.htpasswd', '.htdigest', '.git-credentials', '.s3cfg'],
  ...['.boto', '.dockercfg', '.vault-token', '.lesshst', '.viminfo'],
  // What desktops leave behind.
  ...['.ds_store', 'thumbs.db', '.spotlight-v100', '.fseventsd', '.trashes', '$recycle.bin', 'lost+found'],
])

/** Files and directories by their name and that of the directory that they are in. */
const places = new Set([
  ...[
    '.docker/config.json',
    '.config/gcloud',
    '.config/gh',
    '.config/rclone',
    '.cargo/credentials',
    '.subversion/auth',
  ],
  ...[
    '.cargo/credentials.toml',
    '.gem/credentials',
    '.composer/auth.json',
    '.m2/settings.xml',
    '.streamlit/secrets.toml',
  ],
  ...['.m2/settings-security.xml', '.yarn/cache', '.yarn/unplugged', '.terraform.d/credentials.tfrc.json'],
])

const patterns = new RegExp(
  [
    // Environment files, except for those that are made to be shown.
    '^\\.env(?!.*\\.(example|sample|template)$)',
    '^(?!(example|sample|template)\\.).*\\.env$',
    // Keys, also as copies: `server.key.bak`.
    '\\.(pem|key|p12|pfx|p8|jks|keystore|ppk|kdbx?|ovpn|tfstate|tfvars)(\\.(bak|backup|copy|old|orig|save|tmp))*~?$',
    '^id_(rsa|dsa|ecdsa|ed25519)',
    '^client_secret.*\\.json$',
    '^\\..*_history$',
    // Backups and swap files of editors and office programs, and the places of deleted files.
    '~$|^\\.#|^#.*#$|\\.sw[n-p]$|^~\\$|^\\.~lock\\.|^\\._|^\\.nfs[0-9a-f]{8}|^\\.fuse_hidden',
  ].join('|'),
)

/** Whether a path (a `/` at its end says: a directory) is left out by default, whatever case it is spelled in. */
export function isExcludedByDefault(path: string): boolean {
  const name = foldName(baseName(path))
  if (names.has(name) || patterns.test(name)) return true
  const body = path.endsWith('/') ? path.slice(0, -1) : path
  const slash = body.lastIndexOf('/')
  return slash !== -1 && places.has(`${foldName(baseName(body.slice(0, slash)))}/${name}`)
}

/** Whether a path is that of a file of environment variables: `.env`, `.env.local`, `prod.env`. Backups of editors are none. */
export function isDotenv(path: string): boolean {
  return /^\.env(\..+)?$|\.env$/.test(baseName(path)) && !/\/$|~$|\.sw[n-p]$/.test(path)
}

/** What file systems pass over in a name: marks without width (HFS+, case-folding ext4). */
const unseen = /\p{Default_Ignorable_Code_Point}/gu

/**
 * One form for all the spellings that some file system takes for the same name: `.GIT`, `.ſsh` (U+017F), `.git.` (NTFS,
 * SMB), letters with marks of no width in between. It goes too far for anything but the decision to leave something out.
 */
export function foldName(name: string): string {
  if (!/[^\x21-\x7e]|[A-Z]|\.$/.test(name)) return name
  const plain = name.normalize('NFKC').replace(unseen, '').toUpperCase().toLowerCase()
  return plain.replace(/(?<=[^. ])[. ]+$/, '')
}
