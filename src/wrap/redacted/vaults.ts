import { foldName } from './fold.ts'

/**
 * Files that are nothing but secrets, or whose secrets cannot be told from the rest: key stores, password files, states of
 * Terraform, the environments of processes. They are withheld as a whole.
 */
const vaults =
  /(?:^|\/)(?:[._]netrc|\.pgpass|pgpass\.conf|\.ht(?:passwd|digest)|g?shadow-?|\.vault-token|\.vault[_-]pass(?:word)?|\.git-credentials|\.mylogin\.cnf|\.my\.cnf|\.dockercfg|secring\.\w+|wallet\.dat|master\.key|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|login\.keychain(?:-db)?|key[34]\.db|logins\.json|\.boto|\.s3cfg|credentials\.db|access_tokens\.db|\.lesshst|\.(?:bash|zsh|psql|mysql|sqlite|python|node_repl|irb|rediscli)_history)$|\.(?:p12|pfx|p8|jks|jceks|bcfks|keystore|kdbx?|ppk|keytab|agilekeychain|opvault|gnucash|tfstate)(?:\.(?:backup|bak|old|orig|\d+))*$|^proc\/(?:\d+|self)\/(?:environ|cmdline)$|(?:^|\/)(?:private-keys-v1\.d|\.password-store)\//i

/** Whether a file is withheld for its name. */
export function isVault(path: string): boolean {
  return (
    vaults.test(path.length > 4096 ? path.slice(-4096) : path) ||
    (/[^\x20-\x7e]/.test(path) && vaults.test(foldName(path)))
  )
}
