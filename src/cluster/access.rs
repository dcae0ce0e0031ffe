//! How a container reaches the API server as this process does: address, authority, and a short-lived token
//! or the caller's own static credentials. Exec plugins and OIDC never leave this machine.

use jiff::Timestamp;
use kube::config::{AuthInfo, Cluster};
use secrecy::ExposeSecret;
use serde_json::json;

use super::api::{Api, Resource};
use super::client::{ClientError, Connection, chosen};
use super::json::{text, time};
use crate::engine::files::{Access, Login};
use crate::facts::write::WriteFailure;

/// Tokens live this long, the shortest that the API server gives.
const TOKEN_SECONDS: i64 = 600;

const SERVICE_ACCOUNTS: Resource =
    Resource { group: "", version: "v1", plural: "serviceaccounts", kind: "ServiceAccount", namespaced: true };

/// A token and when it ends.
pub struct Token {
    pub token: String,
    pub expires: Option<Timestamp>,
}

/// Asks for a token of a ServiceAccount.
pub async fn request_token(api: &Api, namespace: &str, account: &str) -> Result<Token, WriteFailure> {
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": TOKEN_SECONDS},
    });
    let answer = api.create_sub(&SERVICE_ACCOUNTS, namespace, account, "token", &request).await?;
    match text(&answer, &["status", "token"]) {
        Some(token) => {
            Ok(Token { token: token.to_string(), expires: time(&answer, &["status", "expirationTimestamp"]) })
        }
        None => Err(WriteFailure::NotFound),
    }
}

/// Address and authority of the chosen cluster, with a login.
pub fn access(connection: &Connection, login: Login) -> Result<Access, ClientError> {
    let (cluster, _) = chosen(connection)?;
    let authority = authority(&cluster)?;
    Ok(Access {
        server: cluster.server.unwrap_or_default(),
        authority,
        tls_server_name: cluster.tls_server_name,
        insecure: cluster.insecure_skip_tls_verify.unwrap_or(false),
        proxy_url: cluster.proxy_url,
        login,
    })
}

/// The caller's own credentials, if they are static. `Err` says why not.
pub fn own_login(connection: &Connection) -> Result<Login, String> {
    let (_, user) = chosen(connection).map_err(|e| e.to_string())?;
    if user.exec.is_some() || user.auth_provider.is_some() {
        return Err("your kubeconfig logs in through a helper program, which cannot go into a container".to_string());
    }
    if user.impersonate.is_some() {
        return Err("impersonation cannot be handed to the binary".to_string());
    }
    static_login(&user)
}

fn static_login(user: &AuthInfo) -> Result<Login, String> {
    if let Some(token) = &user.token {
        return Ok(Login::Token(token.expose_secret().to_string()));
    }
    if let Some(file) = &user.token_file {
        let token =
            std::fs::read_to_string(file).map_err(|e| format!("read the token file of your kubeconfig: {e}"))?;
        return Ok(Login::Token(token.trim().to_string()));
    }
    let certificate = pem(user.client_certificate_data.as_deref(), user.client_certificate.as_deref())?;
    let key = pem(user.client_key_data.as_ref().map(|k| k.expose_secret()), user.client_key.as_deref())?;
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Login::Certificate { certificate, key }),
        _ => Err("your kubeconfig has neither a static token nor a client certificate".to_string()),
    }
}

fn authority(cluster: &Cluster) -> Result<Option<String>, ClientError> {
    let read = pem(cluster.certificate_authority_data.as_deref(), cluster.certificate_authority.as_deref());
    read.map_err(ClientError::Selection)
}

/// PEM out of base64 data or of a file. Nothing of the content reaches a message.
fn pem(data: Option<&str>, file: Option<&str>) -> Result<Option<String>, String> {
    if let Some(data) = data.filter(|d| !d.is_empty()) {
        let bytes: k8s_openapi::ByteString =
            serde_json::from_value(json!(data)).map_err(|_| "a certificate of the kubeconfig is not base64")?;
        let text = String::from_utf8(bytes.0).map_err(|_| "a certificate of the kubeconfig is not PEM")?;
        return Ok(Some(text));
    }
    match file.filter(|f| !f.is_empty()) {
        Some(file) => std::fs::read_to_string(file).map(Some).map_err(|e| format!("read {file}: {e}")),
        None => Ok(None),
    }
}
