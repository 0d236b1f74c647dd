//! Keys and credentials of others than the project, by the places where they commonly are.
//!
//! Reads directories only.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Files and directories with credentials, in the home directory: the well-known ones. Each that is there costs a mount.
const CREDENTIALS: [&str; 63] = [
    ".ssh",
    ".gnupg",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/glab-cli",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".kube",
    ".docker/config.json",
    ".config/containers/auth.json",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".vault-token",
    ".password-store",
    ".local/share/keyrings",
    ".codex/auth.json",
    ".claude/.credentials.json",
    ".gemini/oauth_creds.json",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".terraformrc",
    ".terraform.d/credentials.tfrc.json",
    ".pulumi/credentials.json",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".config/pypoetry/auth.toml",
    ".config/hub",
    ".config/rclone",
    ".rclone.conf",
    ".config/sops",
    ".config/op",
    ".config/doctl",
    ".fly/config.yml",
    ".config/netlify",
    ".config/.wrangler",
    ".config/configstore/firebase-tools.json",
    ".local/share/com.vercel.cli/auth.json",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    ".huggingface/token",
    ".kaggle",
    ".nuget/NuGet/NuGet.Config",
    ".config/NuGet/NuGet.Config",
    ".databrickscfg",
    ".s3cfg",
    ".boto",
    ".oci",
    ".bundle/config",
    ".yarnrc",
    ".subversion/auth",
    ".config/github-copilot",
    ".local/share/opencode/auth.json",
];

/// Where everybody may make directories, as in `/tmp`, there are no projects beside one another.
const WRITABLE_BY_ALL: u32 = 0o002;

/// What of that is there.
pub(super) fn credentials(home: &Path) -> Vec<PathBuf> {
    let all = CREDENTIALS.iter().map(|name| home.join(name));
    all.filter(|path| path.exists()).collect()
}

/// The folders by the name of `keys` above the project and beside it.
pub(super) fn other_projects(root: &Path, keys: &Path) -> Vec<PathBuf> {
    let Some((name, parent)) = keys.file_name().zip(root.parent()) else {
        return Vec::new();
    };
    let above = parent.ancestors().map(|ancestor| ancestor.join(name));
    let is_shared = parent
        .metadata()
        .is_ok_and(|found| found.mode() & WRITABLE_BY_ALL != 0);
    let listed = (!is_shared).then(|| fs::read_dir(parent));
    let siblings = listed.into_iter().flatten().flatten().flatten();
    let siblings = siblings
        .filter(|entry| !entry.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|entry| entry.path())
        .filter(|path| path != root);
    above
        .chain(siblings.map(|sibling| sibling.join(name)))
        .filter(|path| path.symlink_metadata().is_ok_and(|found| found.is_dir()))
        .collect()
}
