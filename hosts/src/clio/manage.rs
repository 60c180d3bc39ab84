//! Managing a board over its set-up service: its processes and its offloads.

use crate::roce::SetupError;
use crate::roce::setup::Server;
use p4rack_p4rt::p4rack::clio::v1::clio_client::ClioClient;
use p4rack_p4rt::p4rack::clio::v1::{
    ListOffloadsRequest, ListRequest, ListResponse, LoadOffloadRequest, OffloadFacts, RemoveOffloadRequest,
};
use tonic::transport::Channel;

async fn client(server: &Server) -> Result<ClioClient<Channel>, SetupError> {
    Ok(ClioClient::new(server.channel().await?))
}

/// A board's memory and its processes. Errors: the board can't be reached, or refuses.
pub async fn list(server: &Server) -> Result<ListResponse, SetupError> {
    let listed = client(server).await?.list(ListRequest {}).await;
    listed.map(tonic::Response::into_inner).map_err(|status| server.refused(&status))
}

/// A board's offloads, in the order of their numbers. Errors: the board can't be reached, or refuses.
pub async fn list_offloads(server: &Server) -> Result<Vec<OffloadFacts>, SetupError> {
    let listed = client(server).await?.list_offloads(ListOffloadsRequest {}).await;
    listed.map(|listed| listed.into_inner().offloads).map_err(|status| server.refused(&status))
}

/// Loads a WebAssembly module as an offload with `memory_bytes` bytes of its own. Returns its number. Errors: the board can't be reached,
/// or refuses the module or its name.
pub async fn load_offload(
    server: &Server,
    name: &str,
    module: Vec<u8>,
    memory_bytes: u64,
) -> Result<u64, SetupError> {
    let request = LoadOffloadRequest { name: name.to_owned(), module, memory_bytes };
    let loaded = client(server).await?.load_offload(request).await;
    loaded.map(|loaded| loaded.into_inner().number).map_err(|status| server.refused(&status))
}

/// Removes an offload that this client has loaded. Errors: the board can't be reached, has no such offload, or it is another client's.
pub async fn remove_offload(server: &Server, name: &str) -> Result<(), SetupError> {
    let removed = client(server).await?.remove_offload(RemoveOffloadRequest { name: name.to_owned() }).await;
    removed.map(drop).map_err(|status| server.refused(&status))
}
