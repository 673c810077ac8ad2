import { baseName } from '../core/path.ts'
import { foldName } from './decoded.ts'
import { ownCredentialFiles } from './own-files.ts'

/**
 * Names of files and folders that commonly hold credentials, in lower case. docs/redaction.md lists the same names with
 * the source of each; a test compares the two.
 *
 * - `name` is a file of this name in any folder; `folder/name` is one in such a folder; `/name` is one at the root.
 * - `name/` is a folder, with everything in it.
 * - `*` is any text within a name, `<data>` the extension of a data format, `<12 hex>` twelve hexadecimal digits that do
 *   not end a UUID, `<n>` a number.
 */
export const credentialNames: readonly string[] = [
  ...['.claude/.credentials.json', '.claude.json', '.mcp.json', 'claude_desktop_config.json'],
  ...['.codex/auth.json', '.codex/config.toml', '.gemini/oauth_creds.json', '.gemini/mcp-oauth-tokens.json'],
  ...['opencode/auth.json', 'opencode/mcp-auth.json', 'github-copilot/hosts.json', 'github-copilot/apps.json'],
  ...['.copilot/config.json', '.cursor/mcp.json', '.vscode/mcp.json', 'mcp_config.json'],
  ...['.continue/config.json', '.continue/config.yaml', '.aider.conf.yml', 'io.datasette.llm/keys.json'],
  ...['huggingface/token', 'huggingface/stored_tokens', '.huggingface/token', 'kaggle.json', '.modal.toml'],
  ...['.jupyter/jupyter_server_config.json', '.jupyter/jupyter_notebook_config.json', 'jupyter_cookie_secret'],
  ...['.streamlit/secrets.toml'],
  ...[
    '.claude/settings.local.json',
    'mcp.json',
    'mcp_settings.json',
    'cline_mcp_settings.json',
    '.gemini/settings.json',
  ],
  ...[
    'oauth_creds.json',
    '.qwen/oauth_creds.json',
    '.qwen/settings.json',
    '.factory/auth.json',
    '.factory/config.json',
  ],
  ...[
    '.amp/settings.json',
    'amp/settings.json',
    '.codeium/config.json',
    'cursor/auth.json',
    '.config/zed/settings.json',
  ],
  ...['.zed/settings.json', '.augment/session.json', '.grok/user-settings.json', '.openhands/settings.json'],
  ...[
    '.pi/agent/auth.json',
    '.openclaw/',
    'crush/crush.json',
    '.kaggle/access_token',
    '.comet.config',
    '.runpod/config.toml',
  ],
  ...['.vast_api_key'],
  ...['zed/settings.json', 'opencode.json', 'opencode.jsonc', 'goose/config.yaml', 'goose/config/config.yaml'],
  ...['.aws/', 'aws/credentials', 'accesskeys.csv', '*_accesskeys.csv', 'rootkey.csv', '.boto', '.s3cfg'],
  ...['.passwd-s3fs', '.mc/config.json', 'rclone.conf', '.config/rclone/', '.config/gcloud/'],
  ...['application_default_credentials.json', 'adc.json', 'credentials.db', 'access_tokens.db'],
  ...['service-account*.json', 'service_account*.json', 'serviceaccount*.json', '*-service-account.json'],
  ...['*-<12 hex>.json', '*-firebase-adminsdk-*.json', 'pc-api-*.json', 'google-play*.json'],
  ...['play-store*.json', 'gha-creds-*.json', 'client_secret*.json', 'token.json', 'token.pickle'],
  ...['.clasprc.json', 'configstore/firebase-tools.json', 'configstore/snyk.json', '.azure/'],
  ...['azureprofile.json', 'accesstokens.json', 'msal_token_cache.*', 'service_principal_entries.*'],
  ...['local.settings.json', '*.publishsettings', '*.cscfg', 'doctl/config.yaml', '.tugboat'],
  ...['.fly/config.yml', '.heroku/', 'heroku.json', 'com.vercel.cli/auth.json', 'netlify/config.json'],
  ...['.wrangler/config/default.toml', '.cloudflared/', '.railway/config.json'],
  ...['.supabase/access-token', 'hcloud/cli.toml', 'linode-cli', 'scw/config.yaml', '.oci/'],
  ...['.aliyun/config.json', '.bluemix/', '.cf/config.json', '.databrickscfg', '.snowsql/config'],
  ...['.snowflake/', '.dbt/profiles.yml', '.pulumi/credentials.json', '.terraformrc', 'terraform.rc'],
  ...['credentials.tfrc.json', '*.tfstate', '*.tfstate.*', '*.tfvars', '*.tfvars.json'],
  ...['.rclone.conf', 'openstack/clouds.yaml', 'clouds.yaml', 'openstack/secure.yaml', '.ovh.conf', 'ovh.conf'],
  ...['.civo.json', '.vultr-cli.yaml', 'upctl.yaml', 'exoscale/exoscale.toml', '.koyeb.yaml', '.render/cli.yaml'],
  ...['turso/settings.json', 'planetscale/access-token', '.upstash.json', '.convex/config.json', 'sanity/config.json'],
  ...[
    '.contentfulrc.json',
    'cloudflare.ini',
    '.acme.sh/',
    '.infisical/',
    '.astro/config.yaml',
    '.prefect/profiles.toml',
  ],
  ...['airflow.cfg'],
  ...['.npmrc', '.pypirc', 'pip/pip.conf', '.pip/pip.conf', 'pypoetry/auth.toml', 'uv/credentials/'],
  ...['.cargo/credentials', '.cargo/credentials.toml', '.gem/credentials', '.bundle/config', '/auth.json'],
  ...['.composer/auth.json', 'composer/auth.json', '.m2/settings.xml', '.m2/settings-security.xml'],
  ...['.gradle/gradle.properties', '.ivy2/.credentials', '.sbt/.credentials', 'nuget/nuget.config'],
  ...['.hex/hex.config', 'pub-tokens.json', '.jfrog/', '.sentryclirc', '.pause', 'keystore.properties'],
  ...['key.properties', '.expo/state.json', '.ngrok2/ngrok.yml', 'ngrok.yml', 'stripe/config.toml'],
  ...['.twilio-cli/config.json', '.sfdx/', '.sf/'],
  ...[
    '.bunfig.toml',
    'anaconda-client/tokens/',
    '.lein/credentials.clj',
    '.lein/credentials.clj.gpg',
    '.luarocks/upload_config.lua',
  ],
  ...['.vsce', '.ovsx', '.semgrep/settings.yml', '.wakatime.cfg'],
  ...['.docker/config.json', '.dockercfg', '.dockerconfigjson', 'containers/auth.json', '.kube/', 'kubeconfig'],
  ...['kubeconfig.<data>', '*.kubeconfig', 'kubernetes/admin.conf', 'k3s.yaml', 'helm/registry/config.json'],
  ...['helm/repositories.yaml', 'talosconfig', 'argocd/config', '.vagrant/', '.vault-token', '.vault_pass*'],
  ...['.vault-pass*', 'vault_pass', 'vault_pass.txt', 'vault_password', 'vault_password.txt', 'vault-pass'],
  ...['vault-pass.txt', 'vault-password', 'vault-password.txt', '.ansible/galaxy_token', '.chef/', 'knife.rb'],
  ...['encrypted_data_bag_secret', 'puppetlabs/token', '.puppetlabs/token', 'sops/age/keys.txt', '*.agekey'],
  ...['.doppler/', 'gitlab-runner/config.toml', 'gitlab-secrets.json', 'hudson.util.secret'],
  ...['jenkins.plugins.publish_over_ssh.bapsshpublisherplugin.xml', '.circleci/cli.yml', '.travis/config.yml'],
  ...[`.${ownCredentialFiles.tokens}`, ownCredentialFiles.tokens],
  ...['.rancher/cli2.json', '.talos/config', ownCredentialFiles.driveToken, '.config/hikidashi/', 'state/hikidashi/'],
  ...['local/hikidashi/'],
  ...['.git-credentials', 'git/credentials', '.gitcookies', '.config/gh/', '.config/hub'],
  ...['glab-cli/config.yml', 'tea/config.yml', '.subversion/auth/'],
  ...['.ssh/', 'id_rsa*', 'id_dsa*', 'id_ecdsa*', 'id_ed25519*', '*_rsa', '*_dsa', '*_ecdsa', '*_ed25519'],
  ...['ssh_host_*_key', '*.ppk', '.gnupg/', 'private-keys-v1.d/', 'secring.*', '.*_history', '.zhistory'],
  ...['.histfile', '.rhistory', 'fish_history', 'consolehost_history.txt', '.lesshst', '.viminfo', '.netrc'],
  ...['_netrc', '.curlrc', '.wgetrc', '.ftpconfig', '.remote-sync.json', 'sftp-config.json'],
  ...['.vscode/sftp.json', '.ftppass', 'filezilla.xml', 'recentservers.xml', 'sitemanager.xml', 'winscp.ini'],
  ...['.smbcredentials', 'smbpasswd', '*.keytab', 'krb5cc_*', 'etc/shadow', 'etc/shadow-', 'etc/gshadow'],
  ...['etc/gshadow-', '*.ovpn', '.openvpn/', '*.tblk/', 'wg<n>.conf', 'wireguard/*.conf', 'ipsec.secrets'],
  ...['chap-secrets', 'pap-secrets', '*.nmconnection', 'wpa_supplicant.conf', '*.rdp', '.muttrc', '.msmtprc'],
  ...['.fetchmailrc', '.mbsyncrc', '.offlineimaprc', '.esmtprc', 'sasl_passwd*', '.purple/accounts.xml'],
  ...['otr.private_key', '.irssi/config', 'weechat/sec.conf', '.trc'],
  ...['.tailscale/', 'tailscaled.state', 'authtoken.secret', 'identity.secret', '.tsh/', '.step/', '.authinfo'],
  ...['.authinfo.gpg', 'msmtp/config', 'atuin/key'],
  ...['.pgpass', 'pgpass.conf', '.pg_service.conf', 'pgbouncer/userlist.txt', '.my.cnf', '.mylogin.cnf'],
  ...['.cqlshrc', '.cassandra/cqlshrc', '.odbc.ini', 'cwallet.sso', 'robomongo.json'],
  ...['.dbeaver-data-sources.xml', '.dbeaver/credentials-config.json', 'datasources.local.xml'],
  ...['.idea/webservers.xml', 'http-client.private.env.json', 'pgadmin4.db', '.htpasswd', '.htdigest'],
  ...['proftpdpasswd'],
  ...['.clickhouse-client/', 'atlascli/config.toml', '.influxdbv2/configs', '.duckdb/stored_secrets/'],
  ...['credentials', '.credentials', 'credentials.<data>', '.credentials.<data>', 'creds.<data>'],
  ...['secrets.<data>', '.secret', '.secrets', '.secrets.<data>', '.secrets/'],
  ...['password.<data>', 'passwords.<data>', 'api_key.<data>', 'api_keys.<data>', 'api-key.<data>'],
  ...['api-keys.<data>', 'apikey.<data>', 'apikeys.<data>', 'master.key', 'secret_token.rb'],
  ...['config/database.yml', 'local_settings.py', 'wp-config.php', 'localsettings.php'],
  ...['*.decrypt.private.php', '*.secret.exs', 'playwright/.auth/', 'cypress.env.json'],
  ...['.flaskenv', 'env.local', 'env.*.local', 'env.production', 'env.development', 'env.staging'],
  ...['*.pem', '*.key', '*.p12', '*.pfx', '*.pkcs12', '*.p8', '*.pk8', '*.pvk', '*.snk', '*.jwk', '*.jks'],
  ...['*.jceks', '*.bcfks', '*.bks', '*.keystore', '*.keyring', 'share/keyrings/', '*.kwallet', '*.keychain'],
  ...['*.keychain-db', '*.kdb', '*.kdbx', '*.psafe3', '*.agilekeychain/', '*.opvault/', '*.1pux', '*.1pif'],
  ...['bitwarden_export_*', 'bitwarden cli/data.json', '.lpass/', '.password-store/', '*.gnucash'],
  ...['login data', 'login data for account', 'cookies', 'logins.json', 'key3.db', 'key4.db', 'signons.sqlite'],
  ...['cookies.sqlite', 'cookies.binarycookies', 'cookies.txt'],
  ...['wallet.dat', '*.wallet', '.electrum/', 'utc--*', '.ethereum/', '.foundry/keystores/', 'solana/id.json'],
  ...['.near-credentials/', 'priv_validator_key.json', 'mnemonic.txt'],
]

/** Extensions of data formats: `secrets.yaml` holds secrets, `secrets.ts` and `secrets.md` are about them. */
const dataExtensions =
  'jsonc?|json5|ya?ml|toml|ini|cfg|conf|properties|props|xml|plist|csv|tsv|txt|text|dat|enc|gpg|asc|kdbx?'

/** Endings of copies: `credentials.json.bak` holds the same as `credentials.json`. */
const copyEnding = /(?:\.(?:bak|backup|copy|old|orig|save|tmp))+~?$|~$/

interface Names {
  /** Whole names, or the last two or three segments of a path. */
  readonly whole: Set<string>
  /** Endings of names, from a dot on: `*.pem`. */
  readonly endings: Set<string>
  /** Names with other placeholders, without a folder. */
  readonly pattern: RegExp
  /** Names with other placeholders and a folder. It is matched against a text that begins with `/`. */
  readonly patternBelow: RegExp
}

function compile(names: readonly string[]): Names {
  const [whole, endings] = [new Set<string>(), new Set<string>()]
  const [patterns, patternsBelow]: [string[], string[]] = [[], []]
  for (const name of names)
    if (!/[*<]/.test(name)) whole.add(name)
    else if (/^\*\.[^*</]+$/.test(name)) endings.add(name.slice(1))
    else (name.includes('/') ? patternsBelow : patterns).push(patternOf(name))
  // Without names, the expression matches nothing.
  const joined = (sources: readonly string[]) => (sources.length === 0 ? '(?!)' : `(?:${sources.join('|')})$`)
  return {
    whole,
    endings,
    pattern: new RegExp(`^${joined(patterns)}`),
    patternBelow: new RegExp(`/${joined(patternsBelow)}`),
  }
}

function patternOf(name: string): string {
  return name
    .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*-<12 hex>', '[^/]*(?<!-[0-9a-f]{4})-[0-9a-f]{12}')
    .replaceAll('*', '[^/]*')
    .replaceAll('<data>', `(?:${dataExtensions})`)
    .replaceAll('<n>', '\\d+')
}

const files = compile(credentialNames.filter((name) => !name.endsWith('/')))
const folders = compile(credentialNames.filter((name) => name.endsWith('/')).map((name) => name.slice(0, -1)))

/**
 * Whether the last segment of a path names credentials. The folders above it count only where a name requires them.
 *
 * @param path In lower case, normalized for the comparison of names. A final `/` means a folder.
 */
export function namesCredentials(path: string): boolean {
  const isFolder = path.endsWith('/')
  const body = isFolder ? path.slice(0, -1) : path
  if (hasName(body, isFolder)) return true
  if (isFolder) return false
  const original = body.replace(copyEnding, '')
  return original !== body && original !== '' && hasName(original, false)
}

function hasName(path: string, isFolder: boolean): boolean {
  const name = baseName(path)
  const upper = path.lastIndexOf('/', path.length - name.length - 2) + 1
  const top = path.lastIndexOf('/', upper - 2) + 1
  /** The last two segments of the path and the last three; all, if there are fewer. */
  const [two, three] = [path.slice(upper), path.slice(top)]
  // A file with the name of such a folder counts too.
  if (isAmong(folders, name, two, three)) return true
  return !isFolder && ((name === path && files.whole.has(`/${name}`)) || isAmong(files, name, two, three))
}

function isAmong({ whole, endings, pattern, patternBelow }: Names, name: string, two: string, three: string): boolean {
  if (whole.has(name) || whole.has(two) || whole.has(three)) return true
  for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1))
    if (endings.has(name.slice(dot))) return true
  return pattern.test(name) || patternBelow.test(`/${three}`)
}

/** Files with the hashes of passwords, and with the environments and command lines of processes. */
const others = /(?:^|\/)g?shadow-?$|^proc\/(?:\d+|self)\/(?:environ|cmdline)$/

/** Maximum number of characters of a path that are examined: the end of a longer one. */
const maxPath = 4096

/** Whether a file commonly holds credentials, by its name or that of a folder above it ({@link credentialNames}). */
export function isCredentialFile(path: string): boolean {
  const folded = foldName(path.length > maxPath ? path.slice(-maxPath) : path).toLowerCase()
  if (others.test(folded) || namesCredentials(folded)) return true
  for (let slash = folded.indexOf('/'); slash !== -1; slash = folded.indexOf('/', slash + 1))
    if (namesCredentials(folded.slice(0, slash + 1))) return true
  return false
}
