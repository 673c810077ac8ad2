import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { hosts } from '../../src/cli/hosts/table.ts'
import { comparePaths } from '../../src/core/path.ts'
import type { Provider } from '../../src/core/provider.ts'
import { type FilesOptions, files } from '../../src/providers/files/index.ts'
import { git } from '../../src/providers/git/index.ts'
import { credentialNames, isCredentialFile } from '../../src/secrets/credential-files.ts'
import { ownCredentialFiles } from '../../src/secrets/own-files.ts'
import { redacted } from '../../src/wrap/redacted.ts'
import { createFolder, type Folder, listPaths, textAt } from '../support/folder.ts'
import { memory } from '../support/memory.ts'

let folder: Folder
const opened: Provider[] = []
beforeEach(() => {
  folder = createFolder()
})
afterEach(async () => {
  for (const provider of opened.splice(0)) await provider.close?.()
  folder.remove()
})

async function open(options: Partial<FilesOptions> = {}): Promise<Provider> {
  const provider = await files({ root: folder.root, ...options })
  opened.push(provider)
  return provider
}

/** Names that hold credentials, as the tools write them. */
const common = [
  '.claude/.credentials.json', '.codex/auth.json', '.mcp.json', 'credentials.json', 'kubeconfig', 'service-account.json',
  '.kaggle/kaggle.json', 'rclone.conf', 'secrets.yaml', 'store.jceks', 'wallet.dat', '.hikidashi-tokens.json',
  '.claude.json', '.gemini/oauth_creds.json', '.local/share/opencode/auth.json', '.config/github-copilot/hosts.json',
  '.config/github-copilot/apps.json', '.cursor/mcp.json', '.aws/credentials', 'rootkey.csv', 'ci_accessKeys.csv',
  '.config/gcloud/application_default_credentials.json', 'my-project-0a1b2c3d4e5f.json',
  'shop-firebase-adminsdk-x1y2z-0123456789.json', 'pc-api-4711-0.json', 'client_secret_1.apps.googleusercontent.com.json',
  'token.json', '.azure/msal_token_cache.json', 'local.settings.json', 'site.PublishSettings', '.config/doctl/config.yaml',
  '.fly/config.yml', '.heroku/credentials', '.npmrc', '.pypirc', '.cargo/credentials.toml', '.gem/credentials',
  'auth.json', '.composer/auth.json', '.gradle/gradle.properties', '.m2/settings.xml', '.docker/config.json', '.dockercfg',
  '.config/containers/auth.json', '.config/helm/registry/config.json', '.kube/config', 'prod.kubeconfig', '.vault-token',
  '.vault_pass', 'vault_pass.txt', '.chef/client.pem', 'encrypted_data_bag_secret', '.puppetlabs/token', 'site.pem',
  'site.key', 'site.p12', 'site.pfx', 'store.jks', 'release.keystore', 'passwords.kdbx', 'office.ovpn', '.netrc', '_netrc',
  '.pgpass', '.my.cnf', '.htpasswd', '.s3cfg', '.boto', '.cache/huggingface/token', '.huggingface/token',
  '.jupyter/jupyter_server_config.json', '.streamlit/secrets.toml', 'config/master.key', 'config/credentials/prod.key',
  'AuthKey_2X9R4HXF34.p8', 'terraform.tfstate', 'terraform.tfstate.backup', 'prod.auto.tfvars', '.terraformrc',
  '.terraform.d/credentials.tfrc.json', '.ssh/id_ed25519', 'deploy_rsa', '.gnupg/secring.gpg', '.git-credentials',
  '.config/gh/hosts.yml', '.bash_history', '.mozilla/firefox/p/logins.json', '.config/google-chrome/Default/Login Data',
  'UTC--2026-01-01T00-00-00Z--ab', '.config/solana/id.json', 'secrets.json', 'config/secrets.yml', 'credentials.yaml',
  'passwords.txt', '.secrets.toml', '.dev.vars', '.env.production', 'wg0.conf', 'etc/wireguard/office.conf', 'wp-config.php',
  'gdrive-token.json', '.qwen/oauth_creds.json', '.factory/auth.json', '.amp/settings.json', '.config/amp/settings.json',
  '.codeium/config.json', '.config/zed/settings.json', 'mcp.json', 'deep/mcp.json', 'env.local', 'env.production.local',
  '.flaskenv', '.rclone.conf', '.tailscale/derpmap', '.config/hikidashi/key.json', '.local/state/hikidashi/x/store.sqlite',
  '.zed/settings.json', '.gemini/settings.json', '.iflow/oauth_creds.json', 'clouds.yaml', '.authinfo', '.acme.sh/account.conf',
  'deep/in/a/Credentials.JSON', 'deep/in/SECRETS.YAML', 'credentials.json.bak', 'secrets.yaml~', 'secrets.yaml.old',
] // biome-ignore format: a list of names

/** Names that say something similar and hold something else. */
const harmless = [
  'docs/credentials.md', 'src/secrets.ts', 'src/auth.json', 'src/credentials/index.ts', 'secrets.go', 'secrets_test.py',
  'credentials.example.json', 'secrets.yaml.example', 'design/tokens.json', 'src/cookies/parse.ts', 'src/credentials.rs',
  'kubeconfig.md', 'docs/kubeconfig/index.html', 'src/wallet.ts', 'package.json', 'auth.ts', 'src/token.ts',
  'assets/chunk-0a1b2c3d.json', 'ids/550e8400-e29b-41d4-a716-446655440000.json', 'keys.md', 'settings.json', 'config.toml',
  'vault_password_policy.md', 'password-reset.html', 'apikey.go', 'tsconfig.json', '.vscode/settings.json', 'env.ts', 'mcp.md', 'src/env.d.ts', 'docs/mcp.json.md', 'zed.md', 'a/settings.xml',
] // biome-ignore format: a list of names

/** A path that a name of the list stands for. */
function sampleOf(name: string): string {
  const path = name
    .replace('<data>', 'yaml')
    .replace('<12 hex>', '0a1b2c3d4e5f')
    .replace('<n>', '0')
    .replaceAll('*', 'some')
  return path.endsWith('/') ? `${path}inside.txt` : path.replace(/^\//, '')
}

describe('files that commonly hold credentials', () => {
  test('are neither listed nor read, for 90 common names', async () => {
    expect(common.length).toBeGreaterThanOrEqual(90)
    folder.write(Object.fromEntries(common.map((path) => [path, 'x'])))
    const provider = await open()
    expect(await listPaths(provider)).toEqual([])
    for (const path of common) expect(await textAt(provider, path), path).toBe('!not-found')
  })

  test('are not listed in folders of any depth, nor with names in capital letters', async () => {
    const paths = credentialNames.flatMap((name, i) => {
      const sample = sampleOf(name)
      return name.startsWith('/') ? [sample] : [`a${i}/${sample}`, `b/c${i}/d/${sample.toUpperCase()}`]
    })
    expect(paths.length).toBeGreaterThan(600)
    folder.write(Object.fromEntries(paths.map((path) => [path, 'x'])))
    expect(await listPaths(await open())).toEqual([])
  })

  test('are withheld by a mount with redaction if its source serves them', async () => {
    const paths = common.filter((path) => !/\.env|\.dev\.vars/.test(path))
    const provider = redacted(memory(Object.fromEntries(paths.map((path) => [path, 'nothing that looks secret']))))
    for (const path of paths)
      expect(await textAt(provider, path), path).toMatch(/^\[redacted\] This content is withheld/)
  })

  test('are withheld by a git mount with redaction', async () => {
    folder.write({ '.codex/auth.json': 'nothing that looks secret', 'a.txt': 'a' })
    const run = (...args: readonly string[]) =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: folder.root })
    run('init', '-q', '-b', 'main')
    run('add', '-f', '.')
    run('commit', '-qm', 'first')
    const inner = await git({ repository: folder.root })
    opened.push(inner)
    const provider = redacted(inner)
    const path = (await listPaths(provider)).find((one) => one.endsWith('.codex/auth.json'))
    expect(path).toBeDefined()
    expect(await textAt(provider, path ?? '')).toMatch(/^\[redacted\] This content is withheld/)
  })

  test('are served if "except" names them, and are searched for secrets if redaction is on', async () => {
    const except = ['docs/credentials.json', '.kube/']
    folder.write({ 'docs/credentials.json': '{"password": "hunter2"}', '.kube/config': 'x', 'credentials.json': 'x' })
    const provider = await open({ defaultExcludes: { except } })
    expect(await listPaths(provider)).toEqual(['.kube/config', 'docs/credentials.json'])
    expect(await textAt(redacted(provider, { except }), 'docs/credentials.json')).toBe('{"password": "[redacted]"}')
    expect(await textAt(redacted(provider), 'docs/credentials.json')).toMatch(/withheld/)
  })

  test('do not include files with similar names', async () => {
    folder.write(Object.fromEntries(harmless.map((path) => [path, 'x'])))
    expect(await listPaths(await open())).toEqual([...harmless].sort(comparePaths))
  })
})

test('files that commonly hold credentials include the credential files of the server itself, such as the defaults in the configuration schema, and the files that "hikidashi add" writes', () => {
  const schema = readFileSync(new URL('../../config.schema.json', import.meta.url), 'utf8')
  const files = [...schema.matchAll(/By default \\"([\w.-]*\.(?:json|jsonl|key|pem|sqlite|txt|toml|ya?ml))\\"/g)]
  expect(files.map(([, name]) => name)).toEqual([ownCredentialFiles.driveToken])
  for (const name of Object.values(ownCredentialFiles))
    for (const path of [name, `deep/${name}`]) expect(isCredentialFile(path), path).toBe(true)
  const written = (['linux', 'darwin', 'win32'] as const).flatMap((platform) => {
    const machine = { platform, env: {}, home: '/home/you', folder: '/project' }
    return hosts.flatMap(({ files }) => Object.values(files).flatMap((filesOn) => filesOn(machine)))
  })
  expect(written.length).toBeGreaterThan(20)
  for (const path of written) expect(isCredentialFile(path.replaceAll('\\', '/')), path).toBe(true)
})

test('files that commonly hold credentials are the same in docs/redaction.md and in the code, and each row there has a link or ends with "by their name"', () => {
  const text = readFileSync(new URL('../../docs/redaction.md', import.meta.url), 'utf8')
  const section = text.split('## Files that hold credentials')[1]?.split('\n## ')[0] ?? ''
  const rows = [...section.matchAll(/^\| (`[^|]+`) \| ([^|]+) \|$/gm)].map(([row, names = '', tool = '']) => ({
    row,
    names: [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => name),
    tool,
  }))
  expect(rows.flatMap(({ names }) => names)).toEqual([...credentialNames])
  expect(new Set(credentialNames).size).toBe(credentialNames.length)
  for (const { row, tool } of rows)
    expect(tool, row).toMatch(/^\[[^\]]+\]\((?:https:\/\/|authorization\.md#)\S+\)$|^[a-z ]+ by their name$/)
})
