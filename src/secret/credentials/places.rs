//! Recognizes files that hold credentials by their names. Pure.

use std::path::Path;

/// Well-known files and directories with credentials, relative to a home directory.
pub const SECRET_PLACES: &str = ".ssh .gnupg .netrc .git-credentials .config/git/credentials .config/gh .config/glab-cli .aws .azure \
    .config/gcloud .kube .docker/config.json .config/containers/auth.json .npmrc .yarnrc.yml .pypirc \
    .cargo/credentials .cargo/credentials.toml .gem/credentials .vault-token .password-store \
    .local/share/keyrings .codex/auth.json .claude/.credentials.json .gemini/oauth_creds.json .pgpass \
    .my.cnf .mylogin.cnf .m2/settings.xml .m2/settings-security.xml .gradle/gradle.properties \
    .terraformrc .terraform.d/credentials.tfrc.json .pulumi/credentials.json .composer/auth.json \
    .config/composer/auth.json .config/pypoetry/auth.toml .config/hub .config/rclone .rclone.conf \
    .config/sops .config/op .config/doctl .fly/config.yml .config/netlify .config/.wrangler \
    .config/configstore/firebase-tools.json .local/share/com.vercel.cli/auth.json \
    .cache/huggingface/token .cache/huggingface/stored_tokens .huggingface/token .kaggle \
    .nuget/NuGet/NuGet.Config .config/NuGet/NuGet.Config .databrickscfg .s3cfg .boto .oci .bundle/config \
    .yarnrc .subversion/auth .config/github-copilot .local/share/opencode/auth.json";

/// Places that projects also use for harmless settings. They count as secret only outside the project.
const SETTINGS: [&str; 4] = [".yarnrc", ".yarnrc.yml", ".azure", ".bundle"];

/// Returns whether a file at this path, relative to the project's root or absolute, commonly holds a credential,
/// possibly among other data.
pub fn is_secret_file(path: impl AsRef<Path>) -> bool {
    const NAMES: &str = "id_rsa id_dsa id_ecdsa id_ed25519 _netrc .htpasswd credentials credentials.json \
        application_default_credentials.json kubeconfig .vault_pass .envrc service-account.json \
        service_account.json serviceaccountkey.json";
    const ENDINGS: &str = ".pem .key .p12 .pfx .jks .keystore .kdbx .ppk .tfstate .tfstate.backup";
    const EXAMPLES: [&str; 4] = ["example", "sample", "template", "dist"];
    // Some file systems ignore case.
    let path = path.as_ref().to_string_lossy().to_ascii_lowercase();
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_example = |variant: &str| EXAMPLES.contains(&variant.trim_start_matches('.'));
    if let Some(variant) = name.strip_prefix(".env.").or(name.strip_suffix(".env")) {
        return !is_example(variant);
    }
    NAMES.split(' ').any(|known| known == name)
        || ENDINGS.split(' ').any(|ending| name.ends_with(ending))
        || is_secret_place(Path::new(&path))
}

/// Returns whether a lower-case path is in one of the well-known places, relative to any directory.
fn is_secret_place(path: &Path) -> bool {
    let is_known = |rest: &Path| {
        let is_setting = path.is_relative() && SETTINGS.iter().any(|it| rest.starts_with(it));
        let is_place = |place: &str| rest.starts_with(place.to_ascii_lowercase());
        !is_setting && SECRET_PLACES.split(' ').any(is_place)
    };
    let mut rest = path.iter();
    while !rest.as_path().as_os_str().is_empty() {
        let is_hidden = rest.as_path().as_os_str().as_encoded_bytes().first() == Some(&b'.');
        if is_hidden && is_known(rest.as_path()) {
            return true;
        }
        rest.next();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_credentials_are_known_by_their_names_and_places() {
        for path in [
            ".env",
            "app/.env.production",
            "prod.env",
            ".envrc",
            ".npmrc",
            "web/.npmrc",
            ".netrc",
            "_netrc",
            ".docker/config.json",
            "home/.Docker/config.json",
            ".kube/config",
            ".config/gh/hosts.yml",
            ".aws/credentials",
            ".ssh/config",
            "service-account.json",
            "serviceAccountKey.json",
            "infra/terraform.tfstate",
            "terraform.tfstate.backup",
            ".pypirc",
            "server.key",
            "ID_RSA",
            ".nuget/NuGet/NuGet.Config",
            "conf/credentials.json",
            "kubeconfig",
            "/home/x/.azure/msal_token_cache.json",
        ] {
            assert!(is_secret_file(path), "{path}");
        }
    }

    #[test]
    fn files_that_rarely_hold_credentials_are_read() {
        for path in [
            "",
            ".env.example",
            "example.env",
            ".example.env",
            "src/env.rs",
            "environment",
            "docker/config.json",
            "config/secrets.yml",
            "config/credentials.yml.enc",
            "kube/config",
            "src/credentials.rs",
            ".yarnrc.yml",
            ".azure/pipelines.yml",
            ".config/gh-dash.yml",
            "docs/terraform.tfstate.md",
            "main.tf",
            "prod.tfvars",
        ] {
            assert!(!is_secret_file(path), "{path}");
        }
    }
}
