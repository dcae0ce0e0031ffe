//! The files of an unlock, and the tar that carries them into a volume.
//!
//! Everything lies in one folder that the tar creates with the right owner, so that the volume's own root
//! does not matter. Directories are 0700 and files 0600, owned by who the container runs as.

use std::fmt;

use serde_json::json;

/// Where the volume is mounted.
pub const MOUNT: &str = "/captf/work";
/// Our folder in it.
pub const FOLDER: &str = "unlock";

/// The content of a file. A secret one is never printed.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    Plain(String),
    Secret(String),
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(text) => f.write_str(text),
            Self::Secret(_) => f.write_str("(secret)"),
        }
    }
}

impl Content {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Plain(text) | Self::Secret(text) => text.as_bytes(),
        }
    }
}

/// One file below [`FOLDER`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub path: &'static str,
    pub content: Content,
}

/// The numeric user and group of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pub uid: u64,
    pub gid: u64,
}

/// How the binary reaches the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    pub server: String,
    /// PEM, if the kubeconfig names one.
    pub authority: Option<String>,
    pub tls_server_name: Option<String>,
    pub insecure: bool,
    pub proxy_url: Option<String>,
    pub login: Login,
}

/// As whom.
#[derive(Clone, PartialEq, Eq)]
pub enum Login {
    Token(String),
    Certificate { certificate: String, key: String },
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(_) => f.write_str("Token"),
            Self::Certificate { .. } => f.write_str("Certificate"),
        }
    }
}

/// A path inside the container.
pub fn inside(path: &str) -> String {
    format!("{MOUNT}/{FOLDER}/{path}")
}

/// The kubeconfig: it names files and holds no secret itself.
pub fn kubeconfig(access: &Access) -> String {
    let mut cluster = json!({"server": access.server});
    if access.authority.is_some() {
        cluster["certificate-authority"] = json!(inside("ca.crt"));
    }
    if let Some(name) = &access.tls_server_name {
        cluster["tls-server-name"] = json!(name);
    }
    if access.insecure {
        cluster["insecure-skip-tls-verify"] = json!(true);
    }
    if let Some(url) = &access.proxy_url {
        cluster["proxy-url"] = json!(url);
    }
    let user = match access.login {
        Login::Token(_) => json!({"tokenFile": inside("token")}),
        Login::Certificate { .. } => {
            json!({"client-certificate": inside("client.crt"), "client-key": inside("client.key")})
        }
    };
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "unlock",
        "clusters": [{"name": "unlock", "cluster": cluster}],
        "users": [{"name": "unlock", "user": user}],
        "contexts": [{"name": "unlock", "context": {"cluster": "unlock", "user": "unlock"}}],
    })
    .to_string()
}

/// A root module that declares the backend and nothing else.
pub const MAIN: &str = r#"{"terraform":{"backend":{"kubernetes":{}}}}"#;

/// Every file of an unlock.
pub fn files(access: &Access) -> Vec<File> {
    let plain = |path, text: String| File { path, content: Content::Plain(text) };
    let secret = |path, text: &str| File { path, content: Content::Secret(text.to_string()) };
    let mut all = vec![
        plain("root/main.tf.json", MAIN.to_string()),
        plain("root/terraform.tfvars.json", "{}".to_string()),
        plain("kubeconfig", kubeconfig(access)),
    ];
    if let Some(pem) = &access.authority {
        all.push(plain("ca.crt", pem.clone()));
    }
    match &access.login {
        Login::Token(token) => all.push(secret("token", token)),
        Login::Certificate { certificate, key } => {
            all.push(secret("client.crt", certificate));
            all.push(secret("client.key", key));
        }
    }
    all
}

/// A tar of the folder with its files, all owned by `owner`.
pub fn archive(files: &[File], owner: Owner) -> std::io::Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    let header = |kind: tar::EntryType, mode: u32, size: u64| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(size);
        header.set_uid(owner.uid);
        header.set_gid(owner.gid);
        header
    };
    for folder in ["", "root/", "data/", "tmp/", "home/"] {
        let mut head = header(tar::EntryType::Directory, 0o700, 0);
        builder.append_data(&mut head, format!("{FOLDER}/{folder}"), std::io::empty())?;
    }
    for file in files {
        let bytes = file.content.bytes();
        let mut head = header(tar::EntryType::Regular, 0o600, bytes.len() as u64);
        builder.append_data(&mut head, format!("{FOLDER}/{}", file.path), bytes)?;
    }
    builder.into_inner()
}

/// Which files a tar that came back lacks, or has with another owner, mode or size.
pub fn missing(files: &[File], owner: Owner, archive: &[u8]) -> Vec<String> {
    let mut seen = std::collections::HashMap::new();
    let mut reader = tar::Archive::new(archive);
    for entry in reader.entries().into_iter().flatten().flatten() {
        let header = entry.header();
        let path = entry.path().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
        let found = (header.uid().unwrap_or(u64::MAX), header.mode().unwrap_or(0) & 0o777, header.size().unwrap_or(0));
        seen.insert(path.trim_start_matches("./").to_string(), found);
    }
    let fits = |file: &&File| {
        let wanted = (owner.uid, 0o600, file.content.bytes().len() as u64);
        seen.get(&format!("{FOLDER}/{}", file.path)) != Some(&wanted)
    };
    files.iter().filter(fits).map(|f| inside(f.path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        Access {
            server: "https://10.0.0.5:6443".into(),
            authority: Some("-----BEGIN CERTIFICATE-----".into()),
            tls_server_name: None,
            insecure: false,
            proxy_url: None,
            login: Login::Token("CANARY-TOKEN".into()),
        }
    }

    #[test]
    fn secrets_are_only_in_their_own_files() {
        let files = files(&access());
        for file in files.iter().filter(|f| f.path != "token") {
            assert!(!String::from_utf8_lossy(file.content.bytes()).contains("CANARY"), "{}", file.path);
        }
        assert!(!format!("{files:?} {:?}", access()).contains("CANARY"));
        assert!(files.iter().any(|f| f.path == "token"));
    }

    #[test]
    fn what_came_back_is_compared_with_what_went_in() {
        let owner = Owner { uid: 65532, gid: 65532 };
        let files = files(&access());
        let tar = archive(&files, owner).expect("write to memory");
        assert_eq!(missing(&files, owner, &tar), Vec::<String>::new());
        assert_eq!(missing(&files, Owner { uid: 0, gid: 0 }, &tar).len(), files.len());
        assert_eq!(missing(&files, owner, &[]).len(), files.len());
        let fewer = archive(&files[1..], owner).expect("write to memory");
        assert_eq!(missing(&files, owner, &fewer), ["/captf/work/unlock/root/main.tf.json"]);
    }
}
